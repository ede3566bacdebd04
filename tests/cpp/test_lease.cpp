// Claims on work by files alone: core/files/lease.hpp.

#include <doctest/doctest.h>
#ifndef _WIN32
#include <signal.h>
#include <sys/wait.h>
#endif

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/files/durable.hpp"
#include "core/files/lease.hpp"
#include "core/files/system.hpp"
#include "folder.hpp"

using namespace fsknn;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return text;
}

/// Waits for a long time, because a machine may be slow.
template <class Condition>
bool wait_for(Condition condition) {
  for (int i = 0; i < 60000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("one has a claim, and counts up in it until it ends") {
  const Folder folder;
  const std::string claim = folder.path + "/claim";
  {
    const Lease lease(folder.path + "/a", claim, "words\n", 0.001);
    CHECK(lease.held());
    const Lease other(folder.path + "/b", claim, "others\n", 0.001);
    CHECK_FALSE(other.held());
    CHECK(folder.names() == std::vector<std::string>{"a", "claim"});
    const std::string text = text_of(claim);
    CHECK(text.substr(20) == "\nwords\n");
    CHECK(wait_for([&] { return text_of(claim) > text; }));
    CHECK(text_of(claim).size() == text.size());
  }
  CHECK(folder.names().empty());
  CHECK(Lease(folder.path + "/c", claim, "", 10).held());
}

TEST_CASE("a lease ends at once, however long it waits") {
  const Folder folder;
  const auto began = std::chrono::steady_clock::now();
  { const Lease lease(folder.path + "/a", folder.path + "/claim", "", 1e6); }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60));
}

#ifndef _WIN32
TEST_CASE("a process that stands still counts no further") {
  const Folder folder;
  const std::string claim = folder.path + "/claim";
  const pid_t child = fork();
  if (child == 0) {
    const Lease lease(folder.path + "/a", claim, "", 0.001);
    for (;;) pause();
  }
  REQUIRE(wait_for([&] { return access(claim.c_str(), F_OK) == 0; }));
  kill(child, SIGSTOP);
  int status;
  waitpid(child, &status, WUNTRACED);
  const std::string text = text_of(claim);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(text_of(claim) == text);
  kill(child, SIGCONT);
  CHECK(wait_for([&] { return text_of(claim) > text; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // Nobody deleted it: others must notice that it no longer changes.
  CHECK(access(claim.c_str(), F_OK) == 0);
}

TEST_CASE("a fork ends a lease that is its parent's, and does it no harm") {
  const Folder folder;
  const std::string claim = folder.path + "/claim";
  auto lease = std::make_unique<Lease>(folder.path + "/a", claim, "", 0.001);
  for (int trial = 0; trial < 20; ++trial) {
    const pid_t child = fork();
    if (child == 0) {
      lease.reset();
      _exit(0);
    }
    // A child that waits for the parent's thread would wait forever.
    const bool ended =
        wait_for([&] { return waitpid(child, nullptr, WNOHANG) == child; });
    CHECK(ended);
    if (!ended) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      break;
    }
  }
  const std::string text = text_of(claim);
  CHECK_FALSE(text.empty());
  CHECK(wait_for([&] { return text_of(claim) > text; }));
}

TEST_CASE("many processes claim many tasks, each task one of them") {
  const Folder folder;
  constexpr int kTasks = 200, kChildren = 4;
  std::vector<pid_t> children;
  for (int c = 0; c < kChildren; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string me = folder.path + "/own-" + std::to_string(c) + "-";
      std::ofstream out(folder.path + "/won-" + std::to_string(c));
      std::vector<std::unique_ptr<Lease>> held;
      for (int t = 0; t < kTasks; ++t) {
        const std::string task = std::to_string(t);
        auto lease = std::make_unique<Lease>(
            me + task, folder.path + "/claim-" + task, "", 100);
        if (!lease->held()) continue;
        out << t << "\n";
        held.push_back(std::move(lease));
      }
      out.close();
      // The child exits with its claims, as if it were killed.
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  std::vector<int> times(kTasks);
  for (int c = 0; c < kChildren; ++c) {
    std::ifstream in(folder.path + "/won-" + std::to_string(c));
    for (int t; in >> t;) ++times[static_cast<std::size_t>(t)];
  }
  CHECK(times == std::vector<int>(kTasks, 1));
}
#endif

#ifndef _WIN32  // An open file stays until it is closed.
TEST_CASE("a lease whose own file is swept away is not held, and no error") {
  const Folder folder;
  const std::string own = folder.path + "/own";
  bool held = true;
  for (int trial = 0; held && trial < 1000; ++trial) {
    std::atomic<bool> over{false};
    std::thread sweeper([&] {
      std::error_code ignored;
      while (!over && !std::filesystem::remove(own, ignored)) {
      }
    });
    held = Lease(own, folder.path + "/claim", "", 100).held();
    over = true;
    sweeper.join();
  }
  CHECK_FALSE(held);
  CHECK(folder.names().empty());
}
#endif

TEST_CASE("a claim that can't be made is told") {
  const Folder folder;
  CHECK_THROWS_AS(Lease(folder.path + "/none/a", folder.path + "/c", "", 1),
                  FileFailure);
  CHECK_THROWS_AS(Lease(folder.path + "/a", folder.path + "/none/c", "", 1),
                  FileFailure);
  CHECK(folder.names().empty());
}
