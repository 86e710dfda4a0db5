/**
 * Text symbols of a kernel from the tables within it, which `/proc/kallsyms` prints: a packaged kernel has neither ELF symbols nor
 * a System.map.
 *
 *     6.1   offsets · relative_base · num_syms · names · markers · [seqs_of_names] · token_table · token_index
 *     6.5   num_syms · names · markers · token_table · token_index · offsets · relative_base
 *
 * No header locates them, but they check each other: a token's index is the end of the token before it, and each marker is the
 * offset of every 256th name. So they are searched for, and returned only if all of that holds. Source: Linux,
 * scripts/kallsyms.c (`write_src`) and kernel/kallsyms.c; CONFIG_KALLSYMS_BASE_RELATIVE, the default of all architectures but
 * IA-64 (and without a choice since 6.11).
 */

/** The beginning of a function. */
export interface TextSymbol {
  readonly address: number;
  readonly name: string;
}

const tokenCount = 256;
const tokenBytesMax = 64;
const indexBytes = 2 * tokenCount;
const wordBytes = 4;
const namesOfMarker = 256;
/** Linux 6.1 or later writes lengths from 128 on in two bytes (LEB128). */
const longLength = 0x80;
const symbolsMin = 100;
const symbolsMax = 2 ** 20;
/** Limit of the distance between the number of symbols and the token table; names of 50,000 symbols take 600 KB. */
const searchBytesMax = 16 * 2 ** 20;
/** Letters of nm for functions: global, local, weak. */
const textTypes = 'TtWw';

/** Text symbols of an uncompressed kernel, by address; undefined if it has no such tables. */
export function kallsymsOf(vmlinux: Uint8Array): TextSymbol[] | undefined {
  return new KernelTables(vmlinux).symbols();
}

interface Names {
  readonly countAt: number;
  readonly count: number;
}

class KernelTables {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  symbols(): TextSymbol[] | undefined {
    for (let at = 0; at + indexBytes <= this.#bytes.length; at += wordBytes) {
      const tableAt = this.#tokenTableBefore(at);
      if (tableAt === undefined) continue;
      const names = this.#namesBefore(tableAt);
      const addresses = names && this.#addresses(names, at + indexBytes);
      if (addresses !== undefined) return this.#named(names!, addresses, this.#tokens(tableAt, at));
    }
    return undefined;
  }

  /** Offset of the token table whose index is at `indexAt`. */
  #tokenTableBefore(indexAt: number): number | undefined {
    if (this.#view.getUint16(indexAt, true) !== 0) return undefined;
    const offsets = [0];
    for (let token = 1; token < tokenCount; token++) {
      const offset = this.#view.getUint16(indexAt + 2 * token, true);
      const previous = offsets[token - 1]!;
      // A token has at least one character, and a zero after it.
      if (offset < previous + 2 || offset > previous + tokenBytesMax) return undefined;
      offsets.push(offset);
    }
    const last = offsets.at(-1)!;
    const latest = aligned(indexAt - last - 2 - wordBytes + 1);
    for (let at = latest; at >= 0 && at > latest - tokenBytesMax; at -= wordBytes) {
      const isTable = offsets.every(
        (offset) => this.#bytes[at + offset] !== 0 && (offset === 0 || this.#bytes[at + offset - 1] === 0),
      );
      if (isTable && aligned(this.#bytes.indexOf(0, at + last) + 1) === indexAt) return at;
    }
    return undefined;
  }

  /** The number of symbols, and the names and markers after it, nearest before the token table. */
  #namesBefore(tableAt: number): Names | undefined {
    for (let at = tableAt - wordBytes; at >= Math.max(0, tableAt - searchBytesMax); at -= wordBytes) {
      const count = this.#view.getUint32(at, true);
      if (count < symbolsMin || count > symbolsMax) continue;
      if (this.#areNames(at + wordBytes, count, tableAt)) return { countAt: at, count };
    }
    return undefined;
  }

  #areNames(namesAt: number, count: number, limit: number): boolean {
    const marked: number[] = [];
    let at = namesAt;
    for (let index = 0; index < count; index++) {
      if (index % namesOfMarker === 0) marked.push(at - namesAt);
      const { from, lengthBytes } = this.#name(at);
      at = from + lengthBytes;
      if (lengthBytes === 0 || at > limit) return false;
    }
    const markersAt = aligned(at);
    return (
      markersAt + wordBytes * marked.length <= limit &&
      marked.every((offset, index) => this.#view.getUint32(markersAt + wordBytes * index, true) === offset)
    );
  }

  /** Extent of the tokens of the name at `at`. */
  #name(at: number): { readonly from: number; readonly lengthBytes: number } {
    const first = this.#bytes[at]!;
    return first < longLength
      ? { from: at + 1, lengthBytes: first }
      : { from: at + 2, lengthBytes: (first & (longLength - 1)) + longLength * this.#bytes[at + 1]! };
  }

  /** The addresses, which stand before the number of symbols or after the token index. */
  #addresses({ countAt, count }: Names, afterIndex: number): number[] | undefined {
    const tableBytes = wordBytes * count;
    return this.#addressesAt(countAt - wordBytes - tableBytes, count) ?? this.#addressesAt(afterIndex, count);
  }

  #addressesAt(at: number, count: number): number[] | undefined {
    const baseAt = at + wordBytes * count;
    if (at < 0 || baseAt + wordBytes > this.#bytes.length) return undefined;
    const base = this.#view.getUint32(baseAt, true);
    const addresses: number[] = [];
    for (let index = 0; index < count; index++) {
      const address = base + this.#view.getUint32(at + wordBytes * index, true);
      if (address < (addresses.at(-1) ?? 0) || address >= 2 ** 32) return undefined;
      addresses.push(address);
    }
    return base === 0 || addresses[0] !== base ? undefined : addresses;
  }

  #tokens(tableAt: number, indexAt: number): string[] {
    return Array.from({ length: tokenCount }, (_, token) => {
      const from = tableAt + this.#view.getUint16(indexAt + 2 * token, true);
      return String.fromCharCode(...this.#bytes.subarray(from, this.#bytes.indexOf(0, from)));
    });
  }

  #named({ countAt, count }: Names, addresses: readonly number[], tokens: readonly string[]): TextSymbol[] {
    const symbols: TextSymbol[] = [];
    let at = countAt + wordBytes;
    for (let index = 0; index < count; index++) {
      const { from, lengthBytes } = this.#name(at);
      at = from + lengthBytes;
      let text = '';
      for (const token of this.#bytes.subarray(from, at)) text += tokens[token]!;
      // The first character is the symbol's type.
      if (textTypes.includes(text[0]!)) symbols.push({ address: addresses[index]!, name: text.slice(1) });
    }
    return symbols;
  }
}

const aligned = (offset: number): number => Math.ceil(offset / wordBytes) * wordBytes;
