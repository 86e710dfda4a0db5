/** Kept answers: moving a slider back, or visiting another view and returning, repeats no simulation. */

/**
 * @param most greatest number of kept answers; the least recently used one is dropped first
 * @returns the same function, which answers repeated questions immediately
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
    // A failed question may be asked again.
    found.catch(() => known.delete(key));
    if (known.size > most) known.delete(known.keys().next().value!);
    return found;
  };
}
