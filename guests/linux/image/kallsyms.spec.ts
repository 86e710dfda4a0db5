import { describe, expect, it } from 'vitest';
import { kallsymsOf } from './kallsyms.ts';

const symbolCount = 600;
const base = 0xc100_0000;
const word = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
const padded = (bytes: number[]): number[] => [...bytes, ...new Array<number>(-bytes.length & 3).fill(0)];

/** Symbol n begins 16 n bytes after the base. Every tenth is data; the first of all has a name of more than 127 tokens. */
const typeOf = (index: number): string => (index % 10 === 9 ? 'D' : 'Ttw'[index % 3]!);
const nameOf = (index: number): string => (index === 0 ? 'x'.repeat(200) : `do_nothing_${index}`);

/** Token 0 and 1 are strings, as if they were frequent; each other token is the character of its number. */
const tokens = Array.from({ length: 256 }, (_, token) =>
  token === 0 ? 'do_' : token === 1 ? 'nothing_' : String.fromCharCode(token),
);

function compressed(text: string): number[] {
  if (!text.includes('do_nothing_')) return [...Buffer.from(text)];
  const [type, ...digits] = Buffer.from(text.replace('do_nothing_', ''));
  return [type!, 0, 1, ...digits];
}

/** Tables as scripts/kallsyms.c writes them. */
function tables() {
  const names: number[] = [];
  const markers: number[] = [];
  for (let index = 0; index < symbolCount; index++) {
    if (index % 256 === 0) markers.push(...word(names.length));
    const bytes = compressed(typeOf(index) + nameOf(index));
    names.push(
      ...(bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]),
      ...bytes,
    );
  }
  const offsets = Array.from({ length: symbolCount }, (_, index) => word(16 * index)).flat();
  const strings = tokens.map((text) => [...Buffer.from(text, 'latin1'), 0]);
  const index = strings.flatMap((_, token) => {
    const offset = strings.slice(0, token).flat().length;
    return [offset & 0xff, offset >> 8];
  });
  return {
    addresses: [...offsets, ...word(base)],
    names: [...word(symbolCount), ...padded(names), ...markers],
    sequence: padded(Array.from({ length: symbolCount }, (_, at) => [0, at >> 8, at & 0xff]).flat()),
    tokens: [...padded(strings.flat()), ...index],
  };
}

const noise = Array.from({ length: 4096 }, (_, at) => (at * 73 + (at >> 3)) & 0xff);
const { addresses, names, sequence, tokens: tokenTables } = tables();
const expected = Array.from({ length: symbolCount }, (_, index) => index)
  .filter((index) => typeOf(index) !== 'D')
  .map((index) => ({ address: base + 16 * index, name: nameOf(index) }));

describe('the symbols within a kernel', () => {
  it.each([
    ['6.1', [...addresses, ...names, ...tokenTables]],
    ['6.2, with an order by name', [...addresses, ...names, ...sequence, ...tokenTables]],
    ['6.5', [...names, ...tokenTables, ...addresses]],
  ])('are its functions and their addresses in the order of Linux %s', (_, bytes) => {
    expect(kallsymsOf(Uint8Array.from([...noise, ...bytes, ...noise]))).toEqual(expected);
  });

  it('are undefined without the tables, or if these contradict each other', () => {
    expect(kallsymsOf(Uint8Array.from(noise))).toBeUndefined();
    const damaged = Uint8Array.from([...addresses, ...names, ...tokenTables]);
    // The second marker, after the first one of 4 bytes.
    damaged[addresses.length + names.length - 8]! ^= 1;
    expect(kallsymsOf(damaged)).toBeUndefined();
  });
});
