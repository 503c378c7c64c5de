#include "scenario/sweep/sweep_search.hpp"

#include "scenario/sweep/sweep_value.hpp"

namespace plimsoll {

Format<SweepSearchSpec> sweep_search_format() {
  struct Written {
    Location where;
    Located<std::string> path, from, to;
    std::optional<Located<std::string>> step;
    Expectation subject_to;
  };
  const auto check = [](Written& it, const Node&, Diagnostics& diagnostics) {
    if (it.step) return;
    it.step = {"1", it.from.where};
    if (parse_sweep_value(it.from.value).measure != Measure::number)
      diagnostics.error(it.where, "a quantity needs a `step`: how fine to search");
  };
  return mapped<Written, SweepSearchSpec>(
      Record<Written>("search", "The end of a range up to which all is well, at every point.")
          .where(&Written::where)
          .required("path", &Written::path, located(name()), "what is searched, as `set` takes it")
          .required("from", &Written::from, located(sweep_number_format()), "the least candidate")
          .required("to", &Written::to, located(sweep_number_format()), "no candidate is above it")
          .optional("step", &Written::step, located(sweep_number_format()),
                    "between two candidates; default 1 for numbers")
          .optional("subject_to", &Written::subject_to, expectation_format(),
                    "what must hold; default: the run ends ok")
          .check({"from", "step"}, check)
          .format(),
      [](Written it) {
        SweepRange range{it.where, it.from, it.to, it.step, {}, {}};
        return SweepSearchSpec{it.where, it.path, std::move(range), std::move(it.subject_to)};
      });
}

}  // namespace plimsoll
