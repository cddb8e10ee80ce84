warmroute_add_test(kv_source_test SOURCES kv_source_test.cpp LIBRARIES warmroute::warmroute simdjson::simdjson LABELS core)
if(TARGET warmroute_zmq)
  warmroute_add_test(kv_subscriber_test SOURCES kv_subscriber_test.cpp LIBRARIES warmroute::zmq ${WARMROUTE_ZMQ_LIBRARY})
endif()
