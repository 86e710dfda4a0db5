/** Text of thrown values, which may be anything; building the text never throws. */

/** `Name: message` of an error, else the value as text. Never throws, whatever the value's own methods do. */
export function textOfThrown(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${String(thrown.name)}: ${String(thrown.message)}` : String(thrown);
  } catch {
    return `a thrown ${typeof thrown} whose text cannot be made`;
  }
}
