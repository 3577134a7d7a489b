// A draft is judged, taken and rolled back: what a serving engine with speculation does.
#include <array>
#include <cassert>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenform.h"

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T *handle) const { Free(handle); }
};
using Vocabulary = std::unique_ptr<tokenform_vocabulary, Freed<tokenform_vocabulary_free>>;
using Grammar = std::unique_ptr<tokenform_grammar, Freed<tokenform_grammar_free>>;
using Automaton = std::unique_ptr<tokenform_automaton, Freed<tokenform_automaton_free>>;
using Matcher = std::unique_ptr<tokenform_matcher, Freed<tokenform_matcher_free>>;

int main() {
    std::string bytes;
    std::vector<uint32_t> lengths(257, 1);
    for (int byte = 0; byte < 256; byte++) bytes += static_cast<char>(byte);
    lengths[256] = 0;
    const uint32_t eos = 256;
    Vocabulary vocabulary(tokenform_vocabulary_new(reinterpret_cast<const uint8_t *>(bytes.data()), lengths.data(),
                                                   lengths.size(), &eos, 1, &eos, 1));
    const auto words = static_cast<size_t>(tokenform_mask_words(vocabulary.get()));

    const std::string_view schema = R"({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]})";
    const std::string_view options = R"({"whitespace": "compact", "strings": "canonical", "additional": "forbid"})";
    Grammar grammar(tokenform_grammar_json_schema(schema.data(), schema.size(), options.data(), options.size()));
    assert(grammar && tokenform_grammar_report(grammar.get(), nullptr, 0) == 0);
    Automaton automaton(tokenform_automaton_new(grammar.get(), vocabulary.get(), nullptr));
    vocabulary.reset();  // others that were made of it live on
    grammar.reset();

    Matcher matcher(tokenform_matcher_new(automaton.get(), 12));
    std::array<char, 64> text{};
    auto length = tokenform_matcher_forced_text(matcher.get(), text.data(), text.size());
    std::cout << std::string_view(text.data(), static_cast<size_t>(length)) << "\n";

    std::array<uint32_t, 64> tokens{};
    auto count = static_cast<size_t>(tokenform_matcher_forced_tokens(matcher.get(), tokens.data(), tokens.size()));
    assert(tokenform_matcher_accept(matcher.get(), tokens.data(), count) == 0);

    // " 12}" is a chain, of which the first token is refused; "1" and "2", each with a "}", are a tree
    const std::array<uint32_t, 4> chain{' ', '1', '2', '}'}, tree{'1', '2', '}', '}'};
    const std::array<int32_t, 4> parents{-1, -1, 0, 1};
    std::cout << tokenform_matcher_validate(matcher.get(), chain.data(), chain.size()) << " "
              << tokenform_matcher_validate(matcher.get(), chain.data() + 1, 3) << "\n";
    std::vector<uint32_t> rows(5 * words);
    std::array<uint8_t, 4> allowed{};
    assert(tokenform_matcher_fill_draft_masks(matcher.get(), tree.data(), parents.data(), 4, rows.data(), rows.size(),
                                              allowed.data()) == 0);
    for (auto may : allowed) std::cout << int{may};
    std::cout << "\n";

    assert(tokenform_matcher_accept(matcher.get(), chain.data() + 1, 3) == 0);
    assert(tokenform_matcher_is_accepting(matcher.get()) == 1);
    Matcher twin(tokenform_matcher_fork(matcher.get()));
    assert(tokenform_matcher_rollback(matcher.get(), 2) == 0 && tokenform_matcher_accept(twin.get(), &eos, 1) == 0);
    const std::array<const tokenform_matcher *, 2> both{matcher.get(), twin.get()};
    assert(tokenform_fill_masks(both.data(), 2, rows.data(), 2 * words, 2) == 0);
    std::cout << tokenform_matcher_allowed_tokens(matcher.get(), nullptr, 0) << " "
              << tokenform_matcher_is_terminated(twin.get()) << "\n";

    // whatever is wrong is an error, and the matcher stays where it was
    assert(tokenform_matcher_accept(matcher.get(), chain.data(), 1) == -1);
    std::cout << tokenform_error_kind() << ": " << tokenform_error() << "\n";
    assert(tokenform_matcher_rollback(matcher.get(), 1000) == -1 && tokenform_matcher_fill_mask(nullptr, nullptr, 0) == -1);
    const std::string_view broken = R"({"type": "nothing"})";
    assert(tokenform_grammar_json_schema(broken.data(), broken.size(), nullptr, 0) == nullptr);
    std::cout << tokenform_error_kind() << ": " << tokenform_error() << "\n";
    assert(tokenform_grammar_from_bytes(nullptr, 4) == nullptr && tokenform_grammar_gbnf("\xff", 1, nullptr, 0) == nullptr);
    return 0;
}
