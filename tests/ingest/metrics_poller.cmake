# The tests of ingest/metrics_poller.
warmroute_add_test(metrics_poller_test SOURCES metrics_poller_test.cpp http_answer_test.cpp engine_prefix_test.cpp
  LIBRARIES warmroute::warmroute LABELS core threads)
target_include_directories(metrics_poller_test PRIVATE ${PROJECT_SOURCE_DIR}/lib)  # the reader of answers alone
