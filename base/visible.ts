/** Control characters (C0, delete, C1) and those that change the writing direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text from outside, such as a file's name, for a terminal: characters that would move the cursor or set colours are shown as \xNN. */
export function visible(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}
