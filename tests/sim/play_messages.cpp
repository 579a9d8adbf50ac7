// Sending, receiving and probing.
#include "tests/sim/rank_player.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace verbena::sim_tests {

rank_player::outgoing rank_player::note_send(std::uint32_t on, std::int32_t to, std::int32_t label,
                                             std::size_t size, std::byte* into) {
  const auto me = static_cast<std::uint32_t>(rank_in(on));
  const auto whom = static_cast<std::uint32_t>(to);
  const std::uint64_t sequence = t_.sequences[on][me * t_.p.groups[on].members.size() + whom]++;
  if (into == nullptr) {
    buffers_.emplace_back(size);
    into = buffers_.back().data();
  }
  const std::uint64_t name = message_name(on, me, whom, sequence);
  for (std::size_t i = 0; i < size; ++i) into[i] = byte_of(name, i);
  t_.counted.note_if(to == rank_in(on), event::to_self);
  t_.counted.note_if(size == 0, event::zero_bytes);
  auto& all = t_.seen[on].sends[me];
  all.push_back({whom, label, size, false, errc::success});
  return {all.size() - 1, into};
}

std::size_t rank_player::note_receive(std::uint32_t on, std::int32_t from, std::int32_t label,
                                      std::size_t room) {
  auto& all = t_.seen[on].receives[static_cast<std::size_t>(rank_in(on))];
  received& r = all.emplace_back();
  r.want_source = from;
  r.want_label = label;
  r.room = room;
  r.data.assign(room + margin_bytes, margin_byte);
  t_.counted.note_if(from < 0, event::any_source);
  t_.counted.note_if(label < 0, event::any_tag);
  return all.size() - 1;
}

void rank_player::end_send(std::uint32_t on, std::size_t record, errc error) {
  sent& s = t_.seen[on].sends[static_cast<std::size_t>(rank_in(on))][record];
  s.ended = true;
  s.error = error;
  t_.counted.note_if(error == errc::peer_failed, event::failed);
}

void rank_player::end_receive(std::uint32_t on, std::size_t record, const status& got) {
  received& r = receive_at(on, record);
  r.ended = true;
  r.error = got.error;
  r.source = got.source.value;
  r.label = got.label.value;
  r.bytes = got.bytes;
  r.cancelled = got.error == errc::cancelled && t_.at_end;
  r.withdrawn = got.error == errc::cancelled && !t_.at_end;
  t_.counted.note_if(r.cancelled, event::left_alone);
  t_.counted.note_if(r.withdrawn, event::withdrawn);
  t_.counted.note_if(got.error == errc::truncated, event::truncated);
  t_.counted.note_if(got.error == errc::peer_failed, event::failed);
}

void rank_player::keep_send(std::uint32_t on, std::size_t record, request r) {
  list_of(on).add(std::move(r),
                  {kind::send, on, record, [=, this](const status& s) { end_send(on, record, s.error); }});
}

void rank_player::keep_receive(std::uint32_t on, std::size_t record, request r) {
  list_of(on).add(std::move(r),
                  {kind::receive, on, record, [=, this](const status& s) { end_receive(on, record, s); }});
}

/// The sentence of a message that was too long says which it was.
void rank_player::read_truncation(status& got) const {
  const auto at = last_text_.find("recv posted ");
  std::size_t posted = 0, size = 0;
  int source = -1, label = -1;
  if (at == std::string::npos ||
      std::sscanf(last_text_.c_str() + at, "recv posted %zu B, got %zu B from rank %d tag %d", &posted, &size,
                  &source, &label) != 4 ||
      size <= posted)
    return t_.complain(self_, "a message was too long, and the sentence does not say which: {}", last_text_);
  got.source = rank{source};
  got.label = tag{label};
}

void rank_player::play_send(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const outgoing out = note_send(a.on, a.partner, a.label, a.size);
  const rank to{a.partner};
  const tag label{a.label};
  const void* data = a.size == 0 ? nullptr : out.data;
  switch (a.what) {
    case call::isend:
      return keep_send(a.on, out.record, on->isend(data, a.size, to, label));
    case call::issend:
      return keep_send(a.on, out.record, on->issend(data, a.size, to, label));
    default: {
      const waiting now(*this, a.what, {}, want{false, a.on, a.partner, a.label});
      const auto quietly = [&] {
        return a.what == call::send ? on->send(std::nothrow, data, a.size, to, label)
                                    : on->ssend(std::nothrow, data, a.size, to, label);
      };
      const auto loud = [&] {
        a.what == call::send ? on->send(data, a.size, to, label) : on->ssend(data, a.size, to, label);
        return status{};
      };
      end_send(a.on, out.record, either(a.throwing, loud, quietly).error);
    }
  }
}

void rank_player::play_receive(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const std::size_t record = note_receive(a.on, a.partner, a.label, a.size);
  std::byte* const data = receive_at(a.on, record).data.data();
  const rank from{a.partner};
  const tag label{a.label};
  if (a.what != call::recv) return keep_receive(a.on, record, on->irecv(data, a.size, from, label));
  const waiting now(*this, a.what, want{true, a.on, a.partner, a.label}, {});
  end_receive(a.on, record,
              either(
                  a.throwing, [&] { return on->recv(data, a.size, from, label); },
                  [&] { return on->recv(std::nothrow, data, a.size, from, label); }));
}

/// A message that probe or iprobe has seen: a receive that names it gets it.
void rank_player::receive_probed(const action& a, const status& seen) {
  const std::size_t room = std::min(a.size, seen.bytes + 1000);
  const std::size_t record = note_receive(a.on, seen.source.value, seen.label.value, room);
  std::byte* const data = receive_at(a.on, record).data.data();
  const waiting now(*this, call::recv, {}, {});
  const status got = comm(a.on)->recv(std::nothrow, data, room, seen.source, seen.label);
  end_receive(a.on, record, got);
  if (got.error != errc::success && got.error != errc::truncated) return;
  const bool same = got.source == seen.source && got.label == seen.label &&
                    (got.error == errc::success ? got.bytes == seen.bytes : seen.bytes > room);
  if (!same)
    t_.complain(self_, "communicator {}: a probe saw {} bytes from {} with tag {}, the receive got {} bytes",
                a.on, seen.bytes, seen.source.value, seen.label.value, got.bytes);
}

void rank_player::play_probe(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const rank from{a.partner};
  const tag label{a.label};
  if (a.what == call::iprobe) {
    const auto seen = on->iprobe(from, label);
    if (seen) return receive_probed(a, *seen);
    action instead = a;
    instead.what = call::irecv;
    return play_receive(instead);
  }
  status seen;
  {
    const waiting now(*this, a.what, want{true, a.on, a.partner, a.label}, {});
    seen = either(
        a.throwing, [&] { return on->probe(from, label); },
        [&] { return on->probe(std::nothrow, from, label); });
  }
  if (seen.error == errc::success) return receive_probed(a, seen);
  end_receive(a.on, note_receive(a.on, a.partner, a.label, 0), seen);
}

void rank_player::play_matched(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const rank from{a.partner};
  const tag label{a.label};
  matched_message message;
  if (a.what == call::improbe) {
    auto found = on->improbe(from, label);
    if (!found) {
      action instead = a;
      instead.what = call::irecv;
      return play_receive(instead);
    }
    message = std::move(*found);
  } else {
    const waiting now(*this, a.what, want{true, a.on, a.partner, a.label}, {});
    const status got = loudly([&] {
      message = on->mprobe(from, label);
      return status{};
    });
    if (got.error != errc::success) return end_receive(a.on, note_receive(a.on, a.partner, a.label, 0), got);
  }
  const status found{message.source(), message.label(), message.bytes()};
  if (a.pick % 4 == 0) {  // thrown away
    const std::size_t record = note_receive(a.on, a.partner, a.label, 0);
    return end_receive(a.on, record,
                       {found.source, found.label, 0, found.bytes > 0 ? errc::truncated : errc::success});
  }
  const std::size_t room = std::min(a.size, found.bytes + 1000);
  const std::size_t record = note_receive(a.on, a.partner, a.label, room);
  const std::uint32_t in = a.on;
  list_of(in).add(message.irecv(receive_at(in, record).data.data(), room),
                  {kind::receive, in, record, [=, this](const status& s) {
                     end_receive(in, record, s);
                     if (s.error != errc::success && s.error != errc::truncated) return;
                     if (s.source != found.source || s.label != found.label ||
                         (s.error == errc::success ? s.bytes != found.bytes : found.bytes <= room))
                       t_.complain(self_,
                                   "communicator {}: a matched message of {} bytes was received as {} bytes",
                                   in, found.bytes, s.bytes);
                   }});
}

/// Twice: waited for once, and left pending.
void rank_player::play_persistent_send(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  buffers_.emplace_back(a.size);
  std::byte* const data = buffers_.back().data();
  persistent_request& kept =
      persistent_.emplace_back(persistent{a.on, on->send_init(data, a.size, rank{a.partner}, tag{a.label})})
          .request;
  {
    const outgoing first = note_send(a.on, a.partner, a.label, a.size, data);
    const waiting now(*this, a.what, {}, want{false, a.on, a.partner, a.label});
    end_send(a.on, first.record, kept.start().wait(std::nothrow).error);
  }
  if (!comm(a.on)) return;
  const outgoing second = note_send(a.on, a.partner, a.label, a.size, data);
  keep_send(a.on, second.record, kept.start());
}

void rank_player::play_persistent_receive(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  buffers_.emplace_back(a.size + margin_bytes, margin_byte);
  std::vector<std::byte>& buffer = buffers_.back();
  persistent_request& kept =
      persistent_
          .emplace_back(persistent{a.on, on->recv_init(buffer.data(), a.size, rank{a.partner}, tag{a.label})})
          .request;
  const std::uint32_t in = a.on;
  const auto end = [this, &buffer, in](std::size_t record, const status& s) {
    receive_at(in, record).data = buffer;
    end_receive(in, record, s);
    std::fill(buffer.begin(), buffer.end(), margin_byte);
  };
  {
    const std::size_t first = note_receive(in, a.partner, a.label, a.size);
    const waiting now(*this, a.what, want{true, in, a.partner, a.label}, {});
    end(first, kept.start().wait(std::nothrow));
  }
  const std::size_t second = note_receive(in, a.partner, a.label, a.size);
  list_of(in).add(kept.start(), {kind::receive, in, second, [=](const status& s) { end(second, s); }});
}

void rank_player::play_exchange(const action& a) {
  const auto on = comm(a.on);
  if (!on) return;
  const bool replaces = a.what == call::sendrecv_replace;
  const std::size_t record = note_receive(a.on, a.other, a.other_label, a.other_size);
  std::byte* const in = receive_at(a.on, record).data.data();
  const outgoing out = note_send(a.on, a.partner, a.label, a.size, replaces ? in : nullptr);
  const rank to{a.partner}, from{a.other};
  const tag label{a.label}, in_label{a.other_label};
  const waiting now(*this, a.what, want{true, a.on, a.other, a.other_label},
                    want{false, a.on, a.partner, a.label});
  const status got = either(
      replaces || a.throwing,
      [&] {
        return replaces ? on->sendrecv_replace(in, a.size, to, label, from, in_label)
                        : on->sendrecv(out.data, a.size, to, label, in, a.other_size, from, in_label);
      },
      [&] {
        return on->sendrecv(std::nothrow, out.data, a.size, to, label, in, a.other_size, from, in_label);
      });
  const bool halves_unknown = got.error == errc::peer_failed;
  end_send(a.on, out.record,
           halves_unknown && t_.dead() == t_.p.groups[a.on].members[static_cast<std::size_t>(a.partner)]
               ? errc::peer_failed
               : errc::success);
  end_receive(a.on, record, got);
  receive_at(a.on, record).unknown = halves_unknown;
}

void rank_player::send_for_knot(std::uint32_t on, std::int32_t to, std::int32_t label) {
  const outgoing out = note_send(on, to, std::max(label, 0), 5 + t_.random.below(300));
  const std::size_t record = out.record;
  const sent& s = t_.seen[on].sends[static_cast<std::size_t>(rank_in(on))][record];
  lists_[2].add(comm(on)->isend(out.data, s.size, rank{to}, tag{s.label}),
                {kind::send, on, record, [=, this](const status& got) { end_send(on, record, got.error); }});
}

void rank_player::receive_for_knot(std::uint32_t on, std::int32_t from) {
  constexpr std::size_t enough = 400'000;
  const std::size_t record = note_receive(on, from, -1, enough);
  lists_[2].add(comm(on)->irecv(receive_at(on, record).data.data(), enough, rank{from}, any_tag),
                {kind::receive, on, record, [=, this](const status& got) { end_receive(on, record, got); }});
}

}  // namespace verbena::sim_tests
