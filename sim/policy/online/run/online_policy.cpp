#include "policy/online/run/online_policy.hpp"

namespace plimsoll {

bool OnlinePolicy::may_release(const StorageGraph& /*graph*/, std::uint32_t /*storage*/) const {
  return true;
}

void OnlinePolicy::on_request(const OnlineView& /*view*/, std::uint32_t /*node*/) {}

void OnlinePolicy::on_operator(const OnlineView& /*view*/, const OperatorRun& /*run*/) {}

void OnlinePolicy::on_release(const OnlineView& /*view*/, std::uint32_t /*storage*/) {}

}  // namespace plimsoll
