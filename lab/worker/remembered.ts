/** Answers that are kept: a slider that is moved back, or a step to another view and back, simulates nothing anew. */

/**
 * @param most answers kept; the one that was asked for longest ago goes first
 * @returns the same function, which answers a question that it has answered before at once
 */
export function remembered<Question extends readonly unknown[], Answer>(
  answer: (...question: Question) => Promise<Answer>,
  most: number,
): (...question: Question) => Promise<Answer> {
  const known = new Map<string, Promise<Answer>>();
  return (...question) => {
    const key = JSON.stringify(question);
    const found = known.get(key) ?? answer(...question);
    known.delete(key);
    known.set(key, found);
    // What failed may be asked again.
    found.catch(() => known.delete(key));
    if (known.size > most) known.delete(known.keys().next().value!);
    return found;
  };
}
