// The pure parts of a job over several hosts: frames, proofs, orders, the mapping of ranks, meetings, host files, Slurm's variables.
#include "launcher/hosts/call_back.hpp"
#include "launcher/hosts/mapping.hpp"
#include "launcher/hosts/meetings.hpp"
#include "launcher/hosts/messages.hpp"
#include "launcher/hosts/proof.hpp"
#include "launcher/hosts/starter.hpp"
#include "launcher/options.hpp"
#include "launcher/request.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <optional>

using namespace verbena::launcher;

namespace {

plan_message some_plan() {
  plan_message plan;
  plan.job_name = "verbena-1";
  plan.hosts = {"h1", "h2"};
  plan.host_of = {0, 1, 1};
  plan.here = 1;
  plan.program_of = {0, 0, 1};
  plan.programs = {{"sh", "-c", std::string("a\0b\n\xff", 5)}, {""}};
  plan.environment = {"A=", "B=\xc3\x28"};
  plan.directory = "/ a";
  plan.input_rank = -1;
  plan.bind = 2;
  plan.quiet = true;
  return plan;
}

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

using list = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a message is read as it was written, and no part of one is taken for it", "[hosts]") {
  const std::string bytes = write_fields(some_plan());
  plan_message read;
  REQUIRE(read_fields(bytes, read));
  CHECK(write_fields(read) == bytes);
  CHECK(read.programs == some_plan().programs);
  CHECK(read.environment == some_plan().environment);
  CHECK(read.input_rank == -1);
  CHECK(read.quiet);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    plan_message part;
    CHECK_FALSE(read_fields(bytes.substr(0, size), part));
  }
  plan_message more;
  CHECK_FALSE(read_fields(bytes + "x", more));
}

TEST_CASE("a list that claims to be longer than its frame is refused before anything is allocated", "[hosts]") {
  field_writer writer;
  writer(std::uint32_t{0xfffffff0U});
  std::vector<std::string> names;
  const std::string bytes = writer.take();
  field_reader reader(bytes);
  reader(names);
  CHECK_FALSE(reader.good());
  CHECK(names.capacity() == 0);
}

TEST_CASE("frames are cut from a stream wherever it is torn", "[hosts]") {
  std::string stream;
  for (const std::size_t size : {0UL, 1UL, 300UL, 70'000UL})
    stream += frame_head(frame_kind::output, size) + std::string(size, static_cast<char>(size));
  for (const std::size_t piece : {1UL, 7UL, 65'536UL}) {
    frame_cutter cutter;
    std::vector<std::size_t> sizes;
    frame_kind kind{};
    std::string payload;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      cutter.add(std::string_view(stream).substr(at, piece));
      while (cutter.next(kind, payload)) {
        CHECK(kind == frame_kind::output);
        CHECK(payload == std::string(payload.size(), static_cast<char>(payload.size())));
        sizes.push_back(payload.size());
      }
    }
    CHECK(sizes == std::vector<std::size_t>{0, 1, 300, 70'000});
    CHECK_FALSE(cutter.broken());
  }
  frame_cutter cutter;
  frame_kind kind{};
  std::string payload;
  cutter.add(std::string("\xff\xff\xff\xff\x01", 5));
  CHECK_FALSE(cutter.next(kind, payload));
  CHECK(cutter.broken());
}

TEST_CASE("only who knows the secret proves it, and no proof can be used twice", "[hosts]") {
  const job_secret secret = draw_secret(), other = draw_secret();
  const nonce head = draw_nonce(), agent = draw_nonce();
  const std::string place = "10.0.0.1 4711";
  REQUIRE(read_challenge(bytes_of(make_challenge(head))) == head);
  const std::string claimed = make_claim(secret, 7, head, agent, place);
  const auto made = check_claim(secret, bytes_of(claimed), head, place);
  REQUIRE(made);
  CHECK(made->index == 7);
  CHECK_FALSE(check_claim(other, bytes_of(claimed), head, place));
  CHECK_FALSE(check_claim(secret, bytes_of(claimed), draw_nonce(), place));
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    std::string wrong = claimed;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    CHECK_FALSE(check_claim(secret, bytes_of(wrong), head, place));
  }
  const std::string answer = make_answer(secret, made->theirs, head, place);
  CHECK(check_answer(secret, bytes_of(answer), head, agent, place));
  CHECK_FALSE(check_answer(other, bytes_of(answer), head, agent, place));
  CHECK_FALSE(check_answer(secret, bytes_of(answer), head, draw_nonce(), place));
  // What an agent says is no answer of rdmarun, even with the same numbers.
  CHECK_FALSE(check_answer(secret, bytes_of(claimed.substr(36)), head, agent, place));
  // Whoever passes the words on from another place proves nothing.
  CHECK_FALSE(check_claim(secret, bytes_of(claimed), head, "127.0.0.1 4711"));
  CHECK_FALSE(check_answer(secret, bytes_of(answer), head, agent, "10.0.0.1 4712"));
}

TEST_CASE("an agent's order is read as it was written, and nothing else is one", "[hosts]") {
  const agent_order order{1, 12, draw_secret(), {"10.0.0.1 4000", "fd00::1 4001"}};
  const auto read = read_order("verbena-agent 1 12 " + to_hex(order.secret) + " 10.0.0.1 4000 fd00::1 4001");
  REQUIRE(read);
  CHECK(read->index == 12);
  CHECK(read->secret == order.secret);
  CHECK(read->places == order.places);
  CHECK(write_order(order) == "verbena-agent 1 12 " + to_hex(order.secret) + " 10.0.0.1 4000 fd00::1 4001\n");
  for (const char* wrong : {"", "verbena-agent", "verbena-agent 1 12 00 a 1", "Welcome to h2, have a nice day"})
    CHECK_FALSE(read_order(wrong));
}

TEST_CASE("ranks are mapped to hosts by slots or in turn, and beyond the slots once more", "[hosts]") {
  CHECK(map_ranks(mapping::slot, {2, 1, 2}, 5) == list{0, 0, 1, 2, 2});
  CHECK(map_ranks(mapping::slot, {4, 4}, 3) == list{0, 0, 0});
  CHECK(map_ranks(mapping::slot, {1, 2}, 7) == list{0, 0, 0, 1, 1, 1, 1});
  CHECK(map_ranks(mapping::node, {2, 1, 2}, 5) == list{0, 1, 2, 0, 2});
  CHECK(map_ranks(mapping::node, {1, 1}, 5) == list{0, 1, 0, 1, 0});
  CHECK(map_ranks(mapping::slot, {1}, 3) == list{0, 0, 0});
  for (const mapping inside : {mapping::core, mapping::numa}) {
    CHECK(map_ranks(inside, {2, 1, 2}, 5) == list{0, 0, 1, 2, 2});
    CHECK(map_ranks(inside, {1, 2}, 7) == list{0, 0, 0, 1, 1, 1, 1});
  }
}

TEST_CASE("a fence ends when all hosts of its ranks have come, and the next one may have begun", "[hosts]") {
  struct told {
    std::uint32_t host;
    std::uint64_t ticket;
    std::string data;
    bool operator==(const told&) const = default;
  };
  std::vector<told> done, fetched;
  meetings table{{0, 0, 1, 2},
                 {[&](std::uint32_t host, std::uint64_t ticket, bool, const std::string& data) {
                    done.push_back({host, ticket, data});
                  },
                  [&](std::uint32_t host, std::uint64_t ticket, std::uint32_t rank) {
                    fetched.push_back({host, ticket, std::to_string(rank)});
                  },
                  [&](std::uint32_t host, std::uint64_t ticket, bool good, const std::string& data) {
                    done.push_back({host, ticket, (good ? "good " : "bad ") + data});
                  }}};
  table.fence(0, 10, {}, "a");
  table.fence(0, 11, {}, "A");  // quick: it is at the next one already
  table.fence(1, 20, {}, "b");
  CHECK(done.empty());
  table.fence(2, 30, {}, "c");
  CHECK(done == std::vector<told>{{0, 10, "abc"}, {1, 20, "abc"}, {2, 30, "abc"}});
  done.clear();
  table.fence(2, 31, {}, "C");
  table.fence(1, 12, {2, 3}, "x");  // another one meanwhile, of two hosts
  table.fence(2, 32, {2, 3}, "y");
  CHECK(done == std::vector<told>{{1, 12, "xy"}, {2, 32, "xy"}});
  done.clear();
  table.fence(1, 21, {}, "B");
  CHECK(done == std::vector<told>{{0, 11, "ABC"}, {1, 21, "ABC"}, {2, 31, "ABC"}});
  done.clear();

  table.modex_wanted(0, 5, 3);
  table.modex_wanted(1, 5, 0);
  CHECK(fetched == std::vector<told>{{2, 1, "3"}, {0, 2, "0"}});
  table.modex_ready(2, true, "value");
  table.modex_ready(2, true, "again");
  table.modex_ready(1, false, "");
  table.modex_wanted(0, 6, 4);  // no such rank
  CHECK(done == std::vector<told>{{1, 5, "good value"}, {0, 5, "bad "}, {0, 6, "bad "}});
}

TEST_CASE("only a login that was turned away at the door is worth another try", "[hosts]") {
  CHECK(turned_away("kex_exchange_identification: Connection closed by remote host", 255));
  CHECK(turned_away("kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.2 port 22", 255));
  CHECK(turned_away("Connection closed by UNKNOWN port 65535", 255));
  CHECK_FALSE(turned_away("Connection closed by 10.0.0.2 port 22", 1));  // the words of something else
  CHECK_FALSE(turned_away("ssh: Could not resolve hostname h9: Name or service not known", 255));
  CHECK_FALSE(turned_away("ssh: connect to host h2 port 22: Connection refused", 255));
  CHECK_FALSE(turned_away("root@h2: Permission denied (publickey).", 255));
  CHECK_FALSE(turned_away("Host key verification failed.", 255));
}

TEST_CASE("host files in the peers' forms are read, and wrong lines named", "[hosts]") {
  std::vector<host_slots> hosts;
  CHECK(parse_hostfile("# a job\nh1 slots=4 max_slots=8\n\n  h2:3  # second\nh3\r\n", "f", hosts).empty());
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0].name == "h1");
  CHECK(hosts[0].slots == 4);
  CHECK(hosts[1].slots == 3);
  CHECK(hosts[2].name == "h3");
  CHECK(hosts[2].slots == 1);
  CHECK(parse_hostfile("h1\nh2 slots=0\n", "f", hosts) == "f:2: 'slots=0' is no number of slots");
  CHECK(parse_hostfile("h1 cores=2\n", "f", hosts) == "f:1: 'cores=2' is not known here");
  CHECK(parse_hostfile("h1:x\n", "f", hosts) == "f:1: 'h1:x' is no host: NAME or NAME:SLOTS");
  CHECK(parse_hostfile("# nobody\n", "f", hosts) == "the host file 'f' names no host");
}

TEST_CASE("Slurm's lists of hosts are read in all their forms", "[slurm]") {
  using names = std::vector<std::string>;
  const auto expand = [](std::string_view list) {
    names all;
    CHECK(expand_nodelist(list, all) == "");
    return all;
  };
  CHECK(expand("h1") == names{"h1"});
  CHECK(expand("login,h[1-3]") == names{"login", "h1", "h2", "h3"});
  CHECK(expand("h[1,3,5-6],gpu[7]") == names{"h1", "h3", "h5", "h6", "gpu7"});
  CHECK(expand("n[01-03,08-11]") == names{"n01", "n02", "n03", "n08", "n09", "n10", "n11"});
  CHECK(expand("n[8-11]") == names{"n8", "n9", "n10", "n11"});
  CHECK(expand("n[098-101]-ib.local") == names{"n098-ib.local", "n099-ib.local", "n100-ib.local", "n101-ib.local"});
  CHECK(expand("r[0-1]n[1,2]") == names{"r0n1", "r0n2", "r1n1", "r1n2"});
  CHECK(expand("a-b[0-0]").front() == "a-b0");
  CHECK(expand("h[0-65535]").size() == 65536);
  for (const char* wrong : {"", ",", "h1,", "h[", "h[1", "h1]", "h[]", "h[1-]", "h[-1]", "h[3-1]", "h[a-c]", "h[1,,2]", "h[[1]]", "h[1 2]",
                            "h[0-4294967295]", "h[0-65536]", "h[0-999]n[0-999]", "h[1-99999999999]", "h[0-65535],x"}) {
    names all;
    CAPTURE(wrong);
    CHECK(expand_nodelist(wrong, all) != "");
  }
}

TEST_CASE("Slurm's counts of tasks are read in all their forms", "[slurm]") {
  using counts = std::vector<unsigned>;
  const auto expand = [](std::string_view list) {
    counts all;
    CHECK(expand_counts(list, all) == "");
    return all;
  };
  CHECK(expand("4") == counts{4});
  CHECK(expand("4(x2),3") == counts{4, 4, 3});
  CHECK(expand("1,16(x3),2") == counts{1, 16, 16, 16, 2});
  for (const char* wrong : {"", "0", "4(x2", "4(x)", "4(2)", "x", "4,", "4(x4294967295)", "4(x2)3", "-1"}) {
    counts all;
    CAPTURE(wrong);
    CHECK(expand_counts(wrong, all) != "");
  }
}

TEST_CASE("an allocation is found in Slurm's variables, and left to those that it is meant for", "[slurm]") {
  using variables = std::map<std::string, std::string>;
  std::optional<allocation> found;
  const auto find = [&](const variables& set) {
    found.reset();
    return find_allocation(
        [&](const char* name) {
          const auto at = set.find(name);
          return at == set.end() ? nullptr : at->second.c_str();
        },
        found);
  };
  CHECK(find({}) == "");
  CHECK_FALSE(found);
  variables set = {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "h[1-3]"}, {"SLURM_TASKS_PER_NODE", "4(x2),3"}};
  CHECK(find(set) == "");
  REQUIRE(found);
  REQUIRE(found->hosts.size() == 3);
  CHECK(found->hosts[0].name == "h1");
  CHECK(found->hosts[0].slots == 4);
  CHECK(found->hosts[2].slots == 3);
  CHECK(found->here == "");
  CHECK(found->has("h2"));
  CHECK_FALSE(found->has("h4"));
  // Outside, no host of the allocation is ours to start ranks on; as a part of it, one is.
  CHECK_FALSE(is_this_host("h1", {"h1", found}));
  CHECK(is_this_host("localhost", {"h1", found}));
  set["SLURMD_NODENAME"] = "h2";
  CHECK(find(set) == "");
  CHECK(found->here == "h2");
  CHECK(is_this_host("h2", {"host-of-another-name", found}));
  CHECK_FALSE(is_this_host("h1", {"h1", found}));
  // A step of one task is somebody at work; of several tasks each has its own part.
  set["SLURM_STEP_NUM_TASKS"] = "1";
  find(set);
  CHECK(found);
  // There srun has overwritten the job's tasks by the step's.
  set["SLURM_TASKS_PER_NODE"] = set["SLURM_STEP_TASKS_PER_NODE"] = "1";
  set["SLURM_JOB_CPUS_PER_NODE"] = "8(x2),4";
  CHECK(find(set) == "");
  REQUIRE(found);
  CHECK((found->hosts[0].slots == 8 && found->hosts[2].slots == 4));
  set["SLURM_TASKS_PER_NODE"] = "4(x2),3";
  set["SLURM_STEP_NUM_TASKS"] = "4";
  CHECK(find(set) == "");
  CHECK_FALSE(found);
  set.erase("SLURM_STEP_NUM_TASKS");
  set["VERBENA_RANK"] = "0";
  find(set);
  CHECK_FALSE(found);
  set.erase("VERBENA_RANK");
  set["SLURM_TASKS_PER_NODE"] = "4(x2)";
  CHECK(find(set).find("numbers for 2 hosts, and SLURM_JOB_NODELIST names 3") != std::string::npos);
  CHECK_FALSE(found);
  set["SLURM_JOB_NODELIST"] = "h[1-";
  CHECK(find(set).find("SLURM_JOB_NODELIST='h[1-' is not understood: ") != std::string::npos);
}
