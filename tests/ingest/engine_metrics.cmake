# The tests of ingest/engine_metrics.
warmroute_add_test(engine_metrics_test
  SOURCES engine_metrics_cases_test.cpp engine_metrics_test.cpp engine_metrics_robustness_test.cpp
          engine_metrics_text_test.cpp engine_metrics_alloc_test.cpp ../support/counting_new.cpp
  LIBRARIES warmroute::warmroute simdjson::simdjson LABELS core)
target_include_directories(engine_metrics_test PRIVATE ${PROJECT_SOURCE_DIR}/lib)  # the text reader alone
