/** What code throws may be anything; its text is made without running into what it is made of. */

/** `Name: message` of an error, else the value as text. Never throws, whatever the value's own methods do. */
export function textOfThrown(thrown: unknown): string {
  try {
    return thrown instanceof Error ? `${String(thrown.name)}: ${String(thrown.message)}` : String(thrown);
  } catch {
    return `a thrown ${typeof thrown} whose text cannot be made`;
  }
}
