# The tests of ingest/engine_metrics.
warmroute_add_test(engine_metrics_cases_test SOURCES engine_metrics_cases_test.cpp
  LIBRARIES warmroute::warmroute simdjson::simdjson LABELS core)
