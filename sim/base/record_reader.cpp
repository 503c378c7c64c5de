#include "base/record_reader.hpp"

#include "base/format.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plimsoll::detail {

/// What became of the fields of one record.
class RecordReader::Outcome {
 public:
  explicit Outcome(const std::vector<Field>& fields)
      : fields_(fields), states_(fields.size(), State::left_out) {}

  void add_unknown() { all_known_ = false; }
  void add(std::size_t field, bool good) {
    if (states_[field] != State::bad) states_[field] = good ? State::good : State::bad;
  }
  [[nodiscard]] bool is_there(std::size_t field) const { return states_[field] != State::left_out; }
  [[nodiscard]] bool is_good() const {
    return all_known_ && std::ranges::find(states_, State::bad) == states_.end();
  }
  /// Whether a check of `keys` says nothing wrong: a key that is not there may be one misspelt.
  [[nodiscard]] bool suffices_for(const std::vector<std::string>& keys) const {
    return std::ranges::all_of(keys, [&](const std::string& key) {
      const auto field = std::ranges::find(fields_, key, &Field::key);
      const State state = states_[static_cast<std::size_t>(field - fields_.begin())];
      return state == State::good || (state == State::left_out && all_known_);
    });
  }

 private:
  enum class State : std::uint8_t { left_out, good, bad };
  const std::vector<Field>& fields_;
  std::vector<State> states_;  ///< by field
  bool all_known_ = true;      ///< no key that is none of the record's
};

RecordReader::RecordReader(std::string_view title, std::string_view text) {
  shape_.kind = Shape::Kind::record;
  shape_.title = title;
  shape_.text = text;
}

void RecordReader::add_field(std::string_view key, bool required, std::string_view text,
                             const Shape& shape, ReadField read) {
  shape_.fields.push_back({std::string(key), required, std::string(text), shape});
  fields_.push_back({std::string(key), required, std::move(read)});
}

void RecordReader::add_check(std::vector<std::string> keys, RunCheck run) {
  checks_.push_back({std::move(keys), std::move(run)});
}

bool RecordReader::read(const Node& node, void* record, Diagnostics& diagnostics) const {
  if (!node.is_mapping()) {
    report_kind(node, shape_, diagnostics);
    return false;
  }
  if (place_)
    *reinterpret_cast<Location*>(static_cast<std::byte*>(record) + *place_) = node.where();
  Outcome outcome(fields_);
  for (const Node::Entry& entry : node.entries()) {
    const auto field = std::ranges::find(fields_, entry.key.scalar(), &Field::key);
    if (field == fields_.end()) {
      report_unknown_key(entry.key, shape_, diagnostics);
      outcome.add_unknown();
    } else {
      outcome.add(static_cast<std::size_t>(field - fields_.begin()),
                  field->read(entry.value, record, diagnostics));
    }
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!fields_[f].required || outcome.is_there(f)) continue;
    report_missing_key(node, fields_[f].key, shape_, diagnostics);
    outcome.add(f, false);
  }
  for (const Check& check : checks_)
    if (outcome.suffices_for(check.keys)) check.run(record, node, diagnostics);
  return outcome.is_good();
}

}  // namespace plimsoll::detail
