/**
 * The bodies of the functions in a module of WebAssembly, and their replacement. Sections and bodies carry their sizes (WebAssembly core
 * specification 2.0, 5.5), which are written again.
 */

const headerBytes = 8;
const codeSection = 10;

/** A copy of the module whose function bodies are replaced: `index` counts those that the module itself defines. */
export function withBodies(
  wasm: Uint8Array,
  change: (code: Uint8Array, index: number) => Uint8Array,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [wasm.subarray(0, headerBytes)];
  for (let at = headerBytes; at < wasm.length; ) {
    const size = unsignedAt(wasm, at + 1);
    const end = size.end + size.value;
    if (wasm[at] !== codeSection) {
      parts.push(wasm.subarray(at, end));
    } else {
      const bodies = unsignedAt(wasm, size.end);
      const section: Uint8Array[] = [unsigned(bodies.value)];
      for (let from = bodies.end, index = 0; from < end; index++) {
        const body = unsignedAt(wasm, from);
        const code = change(wasm.subarray(body.end, body.end + body.value), index);
        section.push(unsigned(code.length), code);
        from = body.end + body.value;
      }
      const joined = join(section);
      parts.push(Uint8Array.of(codeSection), unsigned(joined.length), joined);
    }
    at = end;
  }
  return join(parts);
}

/** A number in LEB128, and the offset after it. */
export function unsignedAt(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let scale = 1, end = at; ; scale *= 128) {
    const byte = bytes[end++]!;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, end };
  }
}

/** A number in LEB128. */
export function unsigned(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest % 128) | 0x80);
  }
}

export function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
