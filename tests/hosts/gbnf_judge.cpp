// llama.cpp's own reader of GBNF behind three C functions: what `grammar.to_gbnf()` is judged by.
// Built with llama.cpp's llama-grammar.cpp by `tests/hosts/install.py`; no model and no vocabulary is needed.

#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-vocab.h"

#include <cstdarg>
#include <cstdlib>
#include <stdexcept>

// What llama-grammar.cpp wants of the rest of llama.cpp; all of it is for tokens, which a judge of texts has none of.
void llama_log_internal(ggml_log_level, const char *, ...) {}
extern "C" void ggml_abort(const char *, int, const char *, ...) { throw std::runtime_error("llama.cpp aborts"); }
const std::string & llama_vocab::token_to_piece(llama_token) const { std::abort(); }
bool llama_vocab::is_eog(llama_token) const { std::abort(); }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { std::abort(); }

extern "C" {

// A grammar, or null where llama.cpp refuses the text.
void * judge_new(const char * text) {
    try {
        return llama_grammar_init_impl(nullptr, text, "root", false, nullptr, 0, nullptr, 0);
    } catch (const std::exception &) {
        return nullptr;
    }
}

// How many of the code points may stand one after the other; whether the text may end after those, in *ends.
int32_t judge_walk(void * judge, const uint32_t * points, int32_t count, int32_t * ends) {
    auto * grammar = static_cast<llama_grammar *>(judge);
    auto & stacks = llama_grammar_get_stacks(grammar);
    const llama_grammar_stacks start = stacks;
    int32_t taken = 0;
    for (; taken < count; taken++) {
        llama_grammar_stacks before = stacks;
        llama_grammar_accept(grammar, points[taken]);
        if (stacks.empty()) {
            stacks = std::move(before);
            break;
        }
    }
    *ends = 0;
    for (const auto & stack : stacks) {
        *ends |= stack.empty();
    }
    stacks = start;
    return taken;
}

void judge_free(void * judge) { llama_grammar_free_impl(static_cast<llama_grammar *>(judge)); }

}
