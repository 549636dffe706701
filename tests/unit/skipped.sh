#!/bin/sh
# Stands in for the unit tests where Criterion is missing.
echo "unit, integration and wire tests are skipped: Criterion is not installed"
exit 77
