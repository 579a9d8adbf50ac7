// What rdmarun and its agents on other hosts say to each other: frames of a length, a kind and fields. Fields are written one
// after the other, integers little-endian, strings and lists with their length in front, so that any byte can be in an
// argument or a variable. Reading can fail, and never reads or allocates more than the frame holds.
//
//   u32 length of what follows the kind     u8 kind     fields
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace verbena::launcher {

inline constexpr std::uint32_t control_version = 3;
inline constexpr std::size_t frame_head_bytes = 5;
/// Above any job's description; a larger length is nonsense.
inline constexpr std::uint32_t largest_frame = 1U << 28;

enum class frame_kind : std::uint8_t {
  // agent to rdmarun
  hello = 1,
  ready,
  output,
  report,
  event,
  no_output,
  gone,
  input_taken,
  // rdmarun to agent
  plan = 32,
  start,
  signal,
  resume,
  kill,
  end,
  announce,
  announce_ending,
  close_output,
  credit,
  input,
  // both ways: questions of libpmix and their answers
  fence = 64,
  fence_done,
  modex_wanted,
  modex_fetch,
  modex_ready,
  modex_done,
};

/// Appends fields.
class field_writer {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      put(static_cast<std::underlying_type_t<T>>(value));
    } else {
      static_assert(std::is_integral_v<T>);
      auto rest =
          static_cast<std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>>(
              value);
      for (std::size_t i = 0; i < sizeof(T); ++i) {
        bytes_ += static_cast<char>(rest & 0xff);
        if constexpr (sizeof(T) > 1) rest = static_cast<decltype(rest)>(rest >> 8);
      }
    }
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const T& each : list) put(each);
  }
  std::string bytes_;
};

/// Takes fields off; after the first that is not there `good` is false, and all further ones stay as they were.
class field_reader {
 public:
  explicit field_reader(std::string_view bytes) : rest_(bytes) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }
  bool good() const { return good_; }
  /// Everything was read, and nothing is left.
  bool complete() const { return good_ && rest_.empty(); }

 private:
  bool has(std::size_t bytes) {
    good_ = good_ && rest_.size() >= bytes;
    return good_;
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      get(number);
      if (good_) value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t number = 0;
      get(number);
      if (good_) value = number != 0;
    } else {
      static_assert(std::is_integral_v<T>);
      if (!has(sizeof(T))) return;
      std::uint64_t number = 0;
      for (std::size_t i = sizeof(T); i-- > 0;) number = number << 8 | static_cast<unsigned char>(rest_[i]);
      value = static_cast<T>(number);
      rest_.remove_prefix(sizeof(T));
    }
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (!has(size)) return;
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <class T>
  void get(std::vector<T>& list) {
    std::uint32_t size = 0;
    get(size);
    if (!has(size)) return;  // each takes a byte at least
    list.clear();
    for (std::uint32_t i = 0; i < size && good_; ++i) get(list.emplace_back());
    if (!good_) list.clear();
  }
  std::string_view rest_;
  bool good_ = true;
};

/// The fields of a message that has a member `fields(archive)`.
template <class Message>
std::string write_fields(const Message& message) {
  field_writer writer;
  const_cast<Message&>(message).fields(writer);  // the writer only looks
  return writer.take();
}
/// False: the bytes are no such message.
template <class Message>
bool read_fields(std::string_view bytes, Message& message) {
  field_reader reader(bytes);
  message.fields(reader);
  return reader.complete();
}

/// Cuts a stream of bytes into frames.
class frame_cutter {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next whole frame; its payload lives until the next call. False: there is none yet, or the stream is `broken`.
  bool next(frame_kind& kind, std::string& payload);
  bool broken() const { return broken_; }

 private:
  std::string held_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

std::string frame_head(frame_kind kind, std::size_t payload_bytes);

}  // namespace verbena::launcher
