"""The tests import what they share from here: a package of this name elsewhere must not win."""
