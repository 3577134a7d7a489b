/* tokenform for C and C++. Made by cbindgen from rust/capi/src; do not edit. */

#ifndef TOKENFORM_H
#define TOKENFORM_H

#include <stddef.h>
#include <stdint.h>

/* Every call catches what goes wrong: a pointer is then NULL, a number negative, and tokenform_error() says what.
   Handles are made by tokenform_..._new and freed by tokenform_..._free, which take NULL too; a vocabulary or an
   automaton may be freed while others that were made of it live. Grammars, vocabularies and automata may be shared by
   threads; a matcher is one thread's at a time. Texts are UTF-8 with their length in bytes, without a zero at their
   end. */

/*
 A constraint over the tokens of a vocabulary, for any number of threads.
 */
typedef struct tokenform_automaton tokenform_automaton;

/*
 A constraint, before any vocabulary is known.
 */
typedef struct tokenform_grammar tokenform_grammar;

/*
 A text over the tokens of an automaton: takes tokens, takes them back, fills masks.
 */
typedef struct tokenform_matcher tokenform_matcher;

/*
 The bytes of every token id.
 */
typedef struct tokenform_vocabulary tokenform_vocabulary;

/*
 What a call may need and an automaton may keep.
 */
typedef struct {
  /*
   Steps of work that one call may need.
   */
  uint64_t work;
  /*
   Bytes that an automaton keeps beside what live texts need.
   */
  uint64_t memory;
  /*
   Nesting of arrays and objects in a document.
   */
  uint32_t depth;
} tokenform_limits;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 What went wrong in the last call of this thread that failed; valid until another of its calls fails.
 */
const char *tokenform_error(void);

/*
 The kind of that error by its name: InvalidSchema, TokenRejected, LimitExceeded, ...
 */
const char *tokenform_error_kind(void);

/*
 For a host without unwinding (WebAssembly), where a call that passes a limit never returns: makes the limit the last
 error of this thread, for tokenform_error and tokenform_error_kind. 0, or -1: no limit was passed, so that what ended
 the call is a mistake of the engine, which the last error then says. Call nothing else of this instance afterwards.
 */
int32_t tokenform_ended(void);

/*
 The version of the library.
 */
const char *tokenform_version(void);

/*
 Memory for an array of the caller's, for hosts without an allocator of their own (WebAssembly); aligned to eight
 bytes. Freed by tokenform_release with the same size.
 */
uint8_t *tokenform_reserve(size_t bytes);

/*
 Frees what tokenform_reserve gave.

 # Safety
 `memory` is NULL or was given by tokenform_reserve for so many bytes, and is not used again.
 */
void tokenform_release(uint8_t *memory, size_t bytes);

/*
 A vocabulary. `bytes`: those of all tokens one after the other, `lengths` how many each has (0: it stands for no
 text); `eos` ends a text; `special` is spelled by no text.

 # Safety
 The arrays have the entries that are said.
 */
tokenform_vocabulary *tokenform_vocabulary_new(const uint8_t *bytes,
                                               const uint32_t *lengths,
                                               size_t count,
                                               const uint32_t *eos,
                                               size_t eos_count,
                                               const uint32_t *special,
                                               size_t special_count);

/*
 # Safety
 `vocabulary` is NULL or a vocabulary that is not used again.
 */
void tokenform_vocabulary_free(tokenform_vocabulary *vocabulary);

/*
 Words of 32 bits that a mask takes, or a negative number.

 # Safety
 `vocabulary` is a vocabulary.
 */
ptrdiff_t tokenform_mask_words(const tokenform_vocabulary *vocabulary);

/*
 The documents of a JSON Schema. `options`: NULL, or a JSON object of the options by name, such as
 {"order": "any", "whitespace": "compact"}; "registry" is a list of [URI, schema as text].

 # Safety
 The texts have the bytes that are said.
 */
tokenform_grammar *tokenform_grammar_json_schema(const char *schema,
                                                 size_t length,
                                                 const char *options,
                                                 size_t options_length);

/*
 The texts that a regular expression in Python's dialect matches from end to end.

 # Safety
 The text has the bytes that are said.
 */
tokenform_grammar *tokenform_grammar_regex(const char *pattern, size_t length);

/*
 Just the texts of a JSON array of strings.

 # Safety
 The text has the bytes that are said.
 */
tokenform_grammar *tokenform_grammar_choice(const char *texts, size_t length);

/*
 The texts of a grammar in GBNF from its rule `start`; NULL: "root".

 # Safety
 The texts have the bytes that are said.
 */
tokenform_grammar *tokenform_grammar_gbnf(const char *grammar_text,
                                          size_t length,
                                          const char *start,
                                          size_t start_length);

/*
 The grammar of bytes that Grammar.to_bytes() of the Python package or tokenform_grammar_to_bytes gave: how
 grammars in Lark's language and tool calls come here.

 # Safety
 `bytes` has `count` entries.
 */
tokenform_grammar *tokenform_grammar_from_bytes(const uint8_t *bytes,
                                                size_t count);

/*
 Writes the grammar as bytes, as far as there is room; returns how many they are, or a negative number.

 # Safety
 `grammar` is a grammar, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_grammar_to_bytes(const tokenform_grammar *grammar,
                                     uint8_t *out,
                                     size_t capacity);

/*
 Writes what was ignored, loosened or not proven, a line each, as far as there is room; returns the bytes it has
 (0: the grammar is exact), or a negative number.

 # Safety
 `grammar` is a grammar, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_grammar_report(const tokenform_grammar *grammar,
                                   char *out,
                                   size_t capacity);

/*
 # Safety
 `grammar` is NULL or a grammar that is not used again.
 */
void tokenform_grammar_free(tokenform_grammar *grammar);

/*
 The automaton of a grammar over a vocabulary; lazy, so this is quick. `limits`: NULL for the usual ones.

 # Safety
 The handles are what they are called; `limits` is NULL or points to limits.
 */
tokenform_automaton *tokenform_automaton_new(const tokenform_grammar *grammar,
                                             const tokenform_vocabulary *vocabulary,
                                             const tokenform_limits *limits);

/*
 # Safety
 `automaton` is NULL or an automaton that is not used again.
 */
void tokenform_automaton_free(tokenform_automaton *automaton);

/*
 Says as JSON what is wrong with a text: "null" where it is accepted, else an object of "offset" (of the first byte that
 is refused; its length where it may go on but not end), "expected" (a list of words) and "pointer" (where the schema
 says so, or null). Writes as far as there is room; returns how many bytes it has, or a negative number.

 # Safety
 `automaton` is an automaton, the text has the bytes that are said, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_automaton_check(const tokenform_automaton *automaton,
                                    const char *document,
                                    size_t length,
                                    char *out,
                                    size_t capacity);

/*
 A matcher before its first token. `max_tokens`: every text ends within so many, the token that ends it not
 counted; -1: as many as it likes.

 # Safety
 `automaton` is an automaton.
 */
tokenform_matcher *tokenform_matcher_new(const tokenform_automaton *automaton,
                                         int32_t max_tokens);

/*
 A matcher at the same place, which goes on by itself.

 # Safety
 `matcher` is a matcher.
 */
tokenform_matcher *tokenform_matcher_fork(const tokenform_matcher *matcher);

/*
 # Safety
 `matcher` is NULL or a matcher that is not used again.
 */
void tokenform_matcher_free(tokenform_matcher *matcher);

/*
 Takes the tokens, all of them (0) or none (-1: an error).

 # Safety
 `matcher` is a matcher, `tokens` has `count` entries.
 */
int32_t tokenform_matcher_accept(tokenform_matcher *matcher, const uint32_t *tokens, size_t count);

/*
 How many of the tokens may follow one after the other, or a negative number; the matcher stays where it is.

 # Safety
 `matcher` is a matcher, `tokens` has `count` entries.
 */
ptrdiff_t tokenform_matcher_validate(const tokenform_matcher *matcher,
                                     const uint32_t *tokens,
                                     size_t count);

/*
 Takes back the last tokens: 0, or -1 where fewer were taken.

 # Safety
 `matcher` is a matcher.
 */
int32_t tokenform_matcher_rollback(tokenform_matcher *matcher, size_t count);

/*
 Takes back every token: 0, or -1 for NULL.

 # Safety
 `matcher` is a matcher.
 */
int32_t tokenform_matcher_reset(tokenform_matcher *matcher);

/*
 Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. 0, or -1: an error.

 # Safety
 `matcher` is a matcher, `out` has room for `words` entries.
 */
int32_t tokenform_matcher_fill_mask(const tokenform_matcher *matcher, uint32_t *out, size_t words);

/*
 Masks for a draft: row 0 is what may come next, row i + 1 what may come after token i. `parents`: NULL for a chain,
 or for each token the one that it follows, by its place in the draft, -1 for the text so far. `allowed`: NULL, or
 room for `count` entries, 1 where a token may stand where it does; rows behind others are zeros. 0, or -1.

 # Safety
 The arrays have the entries that are said, `out` room for `words` of them: count + 1 rows.
 */
int32_t tokenform_matcher_fill_draft_masks(const tokenform_matcher *matcher,
                                           const uint32_t *tokens,
                                           const int32_t *parents,
                                           size_t count,
                                           uint32_t *out,
                                           size_t words,
                                           uint8_t *allowed);

/*
 Masks of several matchers over vocabularies of one size, one row each, on so many threads. Returns how many failed:
 their rows are zeros, and tokenform_error() is the last one's; or -1.

 # Safety
 `matchers` has `count` entries, each a matcher; `out` has room for `words` of them: `count` rows.
 */
ptrdiff_t tokenform_fill_masks(const tokenform_matcher *const *matchers,
                               size_t count,
                               uint32_t *out,
                               size_t words,
                               size_t threads);

/*
 Whether a token that ends the text was taken: 1 or 0, or -1 for NULL.

 # Safety
 `matcher` is a matcher.
 */
int32_t tokenform_matcher_is_terminated(const tokenform_matcher *matcher);

/*
 Whether the text may end here: 1 or 0, or -1: an error.

 # Safety
 `matcher` is a matcher.
 */
int32_t tokenform_matcher_is_accepting(const tokenform_matcher *matcher);

/*
 Writes the ids of the tokens that may come next, ascending, as far as there is room; returns how many they are, or
 a negative number.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_allowed_tokens(const tokenform_matcher *matcher,
                                           uint32_t *out,
                                           size_t capacity);

/*
 Writes the tokens taken; otherwise as tokenform_matcher_allowed_tokens.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_tokens(const tokenform_matcher *matcher,
                                   uint32_t *out,
                                   size_t capacity);

/*
 Writes tokens that spell the text which every continuation begins with; otherwise as
 tokenform_matcher_allowed_tokens.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_forced_tokens(const tokenform_matcher *matcher,
                                          uint32_t *out,
                                          size_t capacity);

/*
 Writes the text which every continuation begins with, without a zero at its end, as far as there is room; returns
 how many bytes it has, or a negative number.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_forced_text(const tokenform_matcher *matcher,
                                        char *out,
                                        size_t capacity);

/*
 Says as JSON what may come next: "expected" (a list of words) and "pointer" (where the schema says so, or null).
 Writes as far as there is room; returns how many bytes it has, or a negative number.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_expected(const tokenform_matcher *matcher,
                                     char *out,
                                     size_t capacity);

/*
 The least number of tokens to an end, the one that ends the text not counted; -2: none is known; -1: an error.

 # Safety
 `matcher` is a matcher.
 */
ptrdiff_t tokenform_matcher_distance(const tokenform_matcher *matcher);

/*
 Says as JSON what a drawing of the automaton from here on shows: "accepting" (for each of at most `most` states, the
 first of which is the present one, whether a text may end there) and "edges" (lists of a state's number, the text that
 leads on, and the next state's number, -1 for one that is not drawn). Writes as far as there is room; returns how many
 bytes it has, or a negative number.

 # Safety
 `matcher` is a matcher, `out` has room for `capacity` entries.
 */
ptrdiff_t tokenform_matcher_drawn(const tokenform_matcher *matcher,
                                  size_t most,
                                  char *out,
                                  size_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOKENFORM_H */
