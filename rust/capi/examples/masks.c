/* Masks along texts, for whoever wants to compare them: what the tests run.
 *
 *   masks VOCABULARY CASES
 *
 * VOCABULARY: count, eos (both uint32), then for each token its length (uint32) and its bytes; the last token is eos.
 * CASES: for each its kind ('j' a JSON Schema with its options after a zero, 'b' a grammar's bytes), the length of the
 * text (uint32), the text, the number of tokens (uint32) and the tokens.  Prints for each case a sum over the masks
 * before, between and after its tokens, or the error.  Numbers are of this machine's byte order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenform.h"

static uint32_t number(FILE *file) {
    uint32_t n = 0;
    return fread(&n, sizeof n, 1, file) == 1 ? n : 0;
}

static char *bytes(FILE *file, size_t length) {
    char *memory = calloc(length + 1, 1);
    if (!memory || fread(memory, 1, length, file) != length) {
        fprintf(stderr, "the file ends too early\n");
        exit(2);
    }
    return memory;
}

static tokenform_vocabulary *read_vocabulary(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    uint32_t count = number(file), eos = number(file);
    uint32_t *lengths = calloc(count, sizeof *lengths);
    size_t total = 0;
    uint8_t *text = malloc(1 << 24);
    if (!lengths || !text) exit(2);
    for (uint32_t i = 0; i < count; i++) {
        lengths[i] = number(file);
        char *token = bytes(file, lengths[i]);
        memcpy(text + total, token, lengths[i]);
        total += lengths[i];
        free(token);
    }
    fclose(file);
    tokenform_vocabulary *made = tokenform_vocabulary_new(text, lengths, count, &eos, 1, &eos, 1);
    free(text);
    free(lengths);
    return made;
}

static uint64_t sum_of(uint64_t sum, const uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) sum = (sum ^ words[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static tokenform_grammar *read_grammar(int kind, const char *text, size_t length) {
    if (kind == 'b') return tokenform_grammar_from_bytes((const uint8_t *)text, length);
    size_t schema = strlen(text);
    return tokenform_grammar_json_schema(text, schema, text + schema + 1, length - schema - 1);
}

/* The sum of the masks along the tokens; 0: an error. */
static uint64_t walk(const tokenform_automaton *automaton, const uint32_t *tokens, uint32_t count, size_t words) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    uint32_t *mask = calloc(words, sizeof *mask);
    tokenform_matcher *matcher = tokenform_matcher_new(automaton, -1);
    for (uint32_t i = 0; mask && i <= count; i++) {
        if (tokenform_matcher_fill_mask(matcher, mask, words) < 0) sum = 0;
        else sum = sum_of(sum, mask, words);
        if (sum && i < count && tokenform_matcher_accept(matcher, tokens + i, 1) < 0) sum = 0;
        if (!sum) break;
    }
    tokenform_matcher_free(matcher);
    free(mask);
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    tokenform_vocabulary *vocabulary = read_vocabulary(argv[1]);
    FILE *cases = fopen(argv[2], "rb");
    if (!vocabulary || !cases) return 2;
    size_t words = (size_t)tokenform_mask_words(vocabulary);
    for (int kind = fgetc(cases); kind != EOF; kind = fgetc(cases)) {
        uint32_t length = number(cases);
        char *text = bytes(cases, length);
        uint32_t count = number(cases);
        uint32_t *tokens = (uint32_t *)(void *)bytes(cases, count * sizeof *tokens);
        tokenform_grammar *grammar = read_grammar(kind, text, length);
        tokenform_automaton *automaton = grammar ? tokenform_automaton_new(grammar, vocabulary, NULL) : NULL;
        uint64_t sum = automaton ? walk(automaton, tokens, count, words) : 0;
        if (sum) printf("%016" PRIx64 "\n", sum);
        else printf("%s\n", tokenform_error_kind());
        tokenform_automaton_free(automaton);
        tokenform_grammar_free(grammar);
        free(tokens);
        free(text);
    }
    fclose(cases);
    tokenform_vocabulary_free(vocabulary);
    return 0;
}
