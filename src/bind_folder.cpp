// Folders that several processes share: claims, points in a file, a monotonic
// clock. Also locks between the processes of one machine.

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "bind_common.hpp"
#include "core/files/digest.hpp"
#include "core/files/durable.hpp"
#include "core/files/host_lock.hpp"
#include "core/files/lease.hpp"
#include "core/files/point_file.hpp"
#include "core/files/system.hpp"

using namespace fsknn;

namespace {

/// A source that keeps R's external pointer alive during a search.
class OpenPoints final : public RowSource {
 public:
  /// `count` of its points, from `first` on.
  OpenPoints(SEXP file, std::int64_t first, std::int64_t count)
      : file_(file), first_(first), count_(count) {}
  std::int64_t num_points() const override { return count_; }
  std::int64_t num_features() const override { return rows_->num_features(); }
  void read(std::int64_t first, std::int64_t count, double* out,
            std::int64_t stride) const override {
    rows_->read(first_ + first, count, out, stride);
  }
  bool on_disk() const override { return rows_->on_disk(); }
  bool prepared() const override { return rows_->prepared(); }

 private:
  Rcpp::XPtr<PointFile> file_;
  const PointFile* rows_ = file_.checked_get();
  std::int64_t first_, count_;
};

/// Reads the digits at `at` as a number, and advances past them; -1: there are
/// none, or too many.
std::int64_t take_number(const char*& at) {
  std::int64_t number = 0;
  const char* const first = at;
  for (; *at >= '0' && *at <= '9'; ++at) {
    if (at - first == 10) return -1;
    number = 10 * number + (*at - '0');
  }
  return at == first ? -1 : number;
}

/// Parses "-000001-002" as two numbers, from 1 and from 0; "-000001" as one.
struct TaskNumbers {
  explicit TaskNumbers(const char* at) {
    if (*at++ != '-') return;
    const std::int64_t first = take_number(at);
    if (*at == '-') {
      ++at;
      second = take_number(at);
      has_second = true;
      if (second < 0) return;
    }
    if (*at == 0) task = first;
  }
  std::int64_t task = -1, second = -1;
  bool has_second = false;
};

class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path)
      : path_(path), folder_(opendir(path.c_str())) {
    if (folder_ == nullptr) fail();
  }
  ~OpenFolder() { closedir(folder_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  /// Returns NULL at the end.
  const char* next() {
    errno = 0;
    const dirent* const entry = readdir(folder_);
    if (entry == nullptr && errno != 0) fail();
    return entry == nullptr ? nullptr : entry->d_name;
  }

 private:
  [[noreturn]] void fail() const {
    const int error = errno;
    throw FileFailure{path_, std::strerror(error), error};
  }
  const std::string path_;
  DIR* const folder_;
};

const char* state_name(PointFile::State state) {
  switch (state) {
    case PointFile::State::whole: return "whole";
    case PointFile::State::missing: return "missing";
    case PointFile::State::damaged: return "damaged";
    case PointFile::State::other: return "other";
  }
  throw std::invalid_argument("a file of points has no such state");
}

}  // namespace

namespace fsknn {
namespace bind {

std::unique_ptr<RowSource> point_file_source(const Rcpp::List& x) {
  const Rcpp::NumericVector size = x["size"];
  const double first =
      x.containsElementNamed("first") ? Rcpp::as<double>(x["first"]) : 1.0;
  return std::unique_ptr<RowSource>(
      new OpenPoints(x["file"], static_cast<std::int64_t>(first) - 1,
                     static_cast<std::int64_t>(size[0])));
}

}  // namespace bind
}  // namespace fsknn

// Seconds of a clock that changes of the system time do not affect.
// [[Rcpp::export(rng = false)]]
double cpp_steady_seconds() {
  const std::chrono::duration<double> now =
      std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

// Waits by that clock. R's Sys.sleep() uses the system time, and sleeps longer
// if it is set back. Sleeps in short pieces, so that Ctrl-C works.
// [[Rcpp::export(rng = false)]]
void cpp_wait(double seconds) {
  constexpr std::chrono::duration<double> kPiece(0.05);
  const double until = cpp_steady_seconds() + seconds;
  for (;;) {
    Rcpp::checkUserInterrupt();
    const std::chrono::duration<double> left(until - cpp_steady_seconds());
    if (!(left.count() > 0)) return;
    std::this_thread::sleep_for(std::min(left, kPiece));
  }
}

// lease: NULL if another process has the claim. See core/files/lease.hpp.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_claim(std::string own, std::string claim, std::string words,
                     double seconds) {
  return bind::with_files([&] {
    std::unique_ptr<Lease> lease(new Lease(own, claim, words, seconds));
    Rcpp::RObject out;
    if (lease->held()) out = Rcpp::XPtr<Lease>(lease.release(), true);
    return Rcpp::List::create(Rcpp::_["lease"] = out);
  });
}

// [[Rcpp::export(rng = false)]]
void cpp_release(SEXP lease) { Rcpp::XPtr<Lease>(lease).release(); }

// Whether the file got the name, which no other has, by a link.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_link_first(std::string from, std::string to) {
  return bind::with_files([&] {
    return Rcpp::List::create(Rcpp::_["first"] = link_first(from, to));
  });
}

// The state of a folder with `count` tasks: see R/folder-claims.R. In C++,
// because every worker checks after each task, with two files per task.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_look_at_folder(std::string folder, int count) {
  return bind::with_files([&] {
    Rcpp::LogicalVector done(count), final(count);
    Rcpp::IntegerVector generation(count), failures(count);
    OpenFolder files(folder);
    while (const char* name = files.next()) {
      const auto of_kind = [name](const char* kind) {
        const std::size_t length = std::strlen(kind);
        if (std::strncmp(name, kind, length) != 0) return TaskNumbers("");
        return TaskNumbers(name + length);
      };
      const TaskNumbers task = of_kind("fsknn-task");
      const TaskNumbers claim = of_kind("fsknn-claim");
      const TaskNumbers failure = of_kind("fsknn-failure");
      const auto known = [count](const TaskNumbers& numbers, bool two) {
        return numbers.has_second == two && numbers.task >= 1 &&
               numbers.task <= count && numbers.second <= INT_MAX;
      };
      if (known(task, false)) done[task.task - 1] = true;
      if (known(claim, true)) {
        int& last = generation[claim.task - 1];
        last = std::max(last, static_cast<int>(claim.second));
      }
      if (known(failure, true)) {
        ++failures[failure.task - 1];
        if (failure.second == 0) final[failure.task - 1] = true;
      }
    }
    // Nested, because at the top `$failure` would partially match "failures".
    const Rcpp::List state = Rcpp::List::create(
        Rcpp::_["done"] = done, Rcpp::_["generation"] = generation,
        Rcpp::_["failures"] = failures, Rcpp::_["final"] = final);
    return Rcpp::List::create(Rcpp::_["state"] = state);
  });
}

// The first bytes of a small file; NULL if it does not exist.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_text(std::string path) {
  return bind::with_files([&] {
    Rcpp::RObject text;
    try {
      InputFile file(path);
      char bytes[4096];
      const std::int64_t size = file.read(bytes, sizeof bytes);
      text = Rcpp::RawVector(bytes, bytes + size);
    } catch (const FileFailure& e) {
      if (e.error != ENOENT && e.error != ESTALE) throw;
    }
    return Rcpp::List::create(Rcpp::_["bytes"] = text);
  });
}

// Writes the points of a search, with missing values filled if requested.
// first: see cpp_write_sealed().
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_write_points(std::string path, SEXP x, Rcpp::List request,
                            std::string fingerprint) {
  return bind::with_files([&] {
    const std::unique_ptr<RowSource> rows =
        bind::row_source(x, {}, bind::fills(x, request));
    return Rcpp::List::create(Rcpp::_["first"] = write_point_file(
                                  path, *rows, from_hexadecimal(fingerprint)));
  });
}

// state: "whole", "missing", "damaged", "other" (other work, or version).
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_open_points(std::string path, std::string fingerprint) {
  return bind::with_files([&] {
    std::unique_ptr<PointFile> file(
        new PointFile(path, from_hexadecimal(fingerprint)));
    const PointFile::State state = file->state();
    Rcpp::List out = Rcpp::List::create(Rcpp::_["state"] = state_name(state));
    if (state != PointFile::State::whole) return out;
    out["size"] =
        Rcpp::NumericVector::create(static_cast<double>(file->num_points()),
                                    static_cast<double>(file->num_features()));
    out["prepared"] = file->prepared();
    out["file"] = Rcpp::XPtr<PointFile>(file.release(), true);
    return out;
  });
}

// All points as a matrix in memory.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_read_points(Rcpp::List points) {
  return bind::with_files([&] {
    const std::unique_ptr<RowSource> rows = bind::point_file_source(points);
    const std::int64_t n = rows->num_points(), d = rows->num_features();
    Rcpp::RObject values = bind::new_vector(REALSXP, n * d);
    values.attr("dim") =
        Rcpp::IntegerVector::create(static_cast<int>(n), static_cast<int>(d));
    double* const out = REAL(values);
    const std::int64_t at_once = rows_per_block(d);
    std::vector<double> block(static_cast<std::size_t>(at_once * d));
    for (std::int64_t first = 0; first < n; first += at_once) {
      const std::int64_t count = std::min(at_once, n - first);
      rows->read(first, count, block.data(), d);
      for (std::int64_t f = 0; f < d; ++f)
        for (std::int64_t r = 0; r < count; ++r)
          out[f * n + first + r] = block[static_cast<std::size_t>(r * d + f)];
    }
    return Rcpp::List::create(Rcpp::_["values"] = values);
  });
}

// lock: NULL if another process of this machine has it.
// [[Rcpp::export(rng = false)]]
Rcpp::List cpp_lock_host(std::string path) {
  return bind::with_files([&] {
    std::unique_ptr<HostLock> lock(new HostLock(path));
    Rcpp::RObject out;
    if (lock->held()) out = Rcpp::XPtr<HostLock>(lock.release(), true);
    return Rcpp::List::create(Rcpp::_["lock"] = out);
  });
}

// [[Rcpp::export(rng = false)]]
void cpp_unlock_host(SEXP lock) { Rcpp::XPtr<HostLock>(lock).release(); }
