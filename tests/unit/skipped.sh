#!/bin/sh
# Stands in for the unit tests where Criterion is missing or does not start.
echo "unit, integration and wire tests are skipped: no Criterion"
exit 77
