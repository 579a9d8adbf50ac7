#include "transport/verbs/status.hpp"

#include <array>

namespace verbena::transport::verbs {
namespace {

constexpr std::string_view of_ours = "a fault of this library: please report it";

constexpr std::array rows = {
    status_row{IBV_WC_SUCCESS, "SUCCESS", "it succeeded", "nothing", errc::success},
    status_row{IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR", "a message and the memory for it differ in size", of_ours,
               errc::system},
    status_row{IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR", "the device here could not carry it out",
               "is the device still there, and its link up (rdma link, ip link)?", errc::link_down},
    status_row{IBV_WC_LOC_EEC_OP_ERR, "LOC_EEC_OP_ERR", "the device here could not carry it out", of_ours,
               errc::system},
    status_row{IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR", "the device here may not read or write the local memory",
               "was the buffer freed or unmapped before the operation ended?", errc::invalid_argument},
    status_row{IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR", "the queue pair had failed before its turn came",
               "what failed first", errc::peer_failed},
    status_row{IBV_WC_MW_BIND_ERR, "MW_BIND_ERR", "a memory window could not be bound", of_ours,
               errc::system},
    status_row{IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR", "the other side answered with nonsense",
               "firmware of both devices", errc::malformed},
    status_row{IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR",
               "what arrived may not be written into the local memory",
               "was the buffer freed or unmapped before the operation ended?", errc::invalid_argument},
    status_row{IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR", "the other side takes no such request",
               "do both sides run the same release?", errc::malformed},
    status_row{IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR", "the other side refused the remote key",
               "is the region still registered there?", errc::access_denied},
    status_row{IBV_WC_REM_OP_ERR, "REM_OP_ERR", "the other side could not carry it out",
               "what the other side reports; do both run the same release?", errc::link_down},
    status_row{
        IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR", "the other side did not answer any try",
        "is that process alive, are both links up, and do the GIDs reach each other (ping their addresses)?",
        errc::peer_failed},
    status_row{IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR",
               "the other side had no room for it after all tries", of_ours, errc::link_down},
    status_row{IBV_WC_LOC_RDD_VIOL_ERR, "LOC_RDD_VIOL_ERR", "domains do not fit", of_ours, errc::system},
    status_row{IBV_WC_REM_INV_RD_REQ_ERR, "REM_INV_RD_REQ_ERR", "the other side takes no such request",
               of_ours, errc::malformed},
    status_row{IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR", "the other side gave it up",
               "what the other side reports", errc::peer_failed},
    status_row{IBV_WC_INV_EECN_ERR, "INV_EECN_ERR", "an end-to-end context that is not there", of_ours,
               errc::system},
    status_row{IBV_WC_INV_EEC_STATE_ERR, "INV_EEC_STATE_ERR", "an end-to-end context in the wrong state",
               of_ours, errc::system},
    status_row{IBV_WC_FATAL_ERR, "FATAL_ERR", "the device here has failed", "the kernel's log (dmesg)",
               errc::link_down},
    status_row{IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR", "the other side did not answer in time",
               "is that process alive, and are both links up?", errc::peer_failed},
    status_row{IBV_WC_GENERAL_ERR, "GENERAL_ERR", "the device here reports a failure of its own",
               "the kernel's log (dmesg)", errc::link_down},
};
constexpr status_row unknown{IBV_WC_GENERAL_ERR, "an unknown status",
                             "the device reports what this release does not know", "the kernel's log (dmesg)",
                             errc::link_down};

}  // namespace

const status_row& row_of(ibv_wc_status status) noexcept {
  for (const status_row& row : rows)
    if (row.status == status) return row;
  return unknown;
}

}  // namespace verbena::transport::verbs
