// What hangs on a communicator: its owner's handle, its name, its attributes.
#include "runtime/context_state.hpp"

#include <verbena/owned_communicator.hpp>

#include <algorithm>

namespace verbena {

struct attribute_key::hooks {
  copy_hook copy;
  free_hook free;
  void* extra;
};

namespace runtime {

void communicator_state::set_attribute(const std::shared_ptr<const attribute_key::hooks>& key, void* value) {
  attributes_.reserve(attributes_.size() + 1);
  erase_attribute(key.get());
  attributes_.push_back({key, value});
}

void* communicator_state::attribute(const attribute_key::hooks* key) const noexcept {
  for (const attribute_value& a : attributes_)
    if (a.key.get() == key) return a.value;
  return nullptr;
}

void communicator_state::erase_attribute(const attribute_key::hooks* key) noexcept {
  const auto at = std::find_if(attributes_.begin(), attributes_.end(),
                               [&](const attribute_value& a) { return a.key.get() == key; });
  if (at == attributes_.end()) return;
  const attribute_value gone = std::move(*at);
  attributes_.erase(at);  // first: the hook finds it gone
  if (gone.key->free != nullptr)
    gone.key->free(communicator_access::handle(*this), gone.value, gone.key->extra);
}

void communicator_state::copy_attributes_from(communicator_state& original) {
  const std::vector<attribute_value> all = original.attributes_;  // a hook may set and erase
  for (const attribute_value& a : all) {
    if (a.key->copy == nullptr) continue;
    void* const copy = a.key->copy(communicator_access::handle(original), communicator_access::handle(*this),
                                   a.value, a.key->extra);
    if (copy != nullptr) set_attribute(a.key, copy);
  }
}

void communicator_state::free_attributes() noexcept {
  while (!attributes_.empty()) erase_attribute(attributes_.back().key.get());
}

}  // namespace runtime

owned_communicator& owned_communicator::operator=(owned_communicator&& other) noexcept {
  if (this != &other) {
    free();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

void owned_communicator::free() noexcept {
  if (state_ == nullptr) return;
  runtime::communicator_state& gone = *std::exchange(state_, nullptr);
  const runtime::entrance inside(gone.host().doors());
  gone.host().retire(gone);
}

void set_name(communicator on, std::string_view name) {
  runtime::communicator_access::state(on).set_name(name);
}
std::string_view name(communicator on) noexcept {
  return runtime::communicator_access::state(on).name();
}

attribute_key::attribute_key(copy_hook copy, free_hook free, void* extra)
    : hooks_(std::make_shared<const hooks>(hooks{copy, free, extra})) {}

void attribute_key::set(communicator on, void* value) const {
  if (value == nullptr)
    throw error(errc::invalid_argument,
                "attribute_key::set: the value is a null pointer; erase takes one out");
  runtime::communicator_state& state = runtime::communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  state.set_attribute(hooks_, value);
}

void* attribute_key::get(communicator on) const noexcept {
  runtime::communicator_state& state = runtime::communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  return state.attribute(hooks_.get());
}

void attribute_key::erase(communicator on) const noexcept {
  runtime::communicator_state& state = runtime::communicator_access::state(on);
  const runtime::entrance inside(state.host().doors());
  state.erase_attribute(hooks_.get());
}

}  // namespace verbena
