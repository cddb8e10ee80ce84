// Request in Python: owns its strings, borrows its arrays through references; and the keywords that friendly calls share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "warmroute/route/request.hpp"

namespace warmroute::python {

/// lifetime: the arrays' owner and the strings live as long as this; `view` is for one call. Not movable: `view` points inside.
struct PyRequest {
  PyRequest() = default;
  PyRequest(const PyRequest&) = delete;
  PyRequest& operator=(const PyRequest&) = delete;

  std::string model, session, tenant, adapter, cache_salt;
  std::vector<ReplicaId> excluded;
  py::object prompt;  // keeps a NumPy array
  TokenView ids;      // or a buffer
  HashView blocks;
  Request view;

  void keep_strings(std::string_view model_name, std::string_view session_key, std::string_view tenant_name,
                    std::string_view adapter_name, std::string_view salt) {
    view.model = model = model_name;
    view.session = session = session_key;
    view.tenant = tenant = tenant_name;
    view.adapter = adapter = adapter_name;
    view.cache_salt = cache_salt = salt;
  }
  void keep_excluded(const std::optional<std::vector<std::uint64_t>>& numbers) {
    for (const std::uint64_t number : numbers.value_or(std::vector<std::uint64_t>{}))
      excluded.push_back(replica_of(number));
    view.excluded = excluded;
  }
};

/// Overrides of a friendly call: keywords by name onto a Request that a body or an array gave.
/// errors: TypeError (no such keyword, wrong type). lifetime: views into `keywords` and `excluded`.
void apply_keywords(Request& request, const py::kwargs& keywords, std::vector<ReplicaId>& excluded);

}  // namespace warmroute::python
