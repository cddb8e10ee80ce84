warmroute_add_test(kv_source_test SOURCES kv_source_test.cpp LIBRARIES warmroute::warmroute simdjson::simdjson LABELS core)
