/**
 * Contexts that are legal except for one or two fields. Such a context passes all checks except those of its odd
 * fields, and so gets further than one of random bits.
 *
 *     45 %  nothing is odd          12 %  two or three fields          2 %  everything is random
 *     33 %  one field is            8 %   a few bits are inverted
 */
import { type BitRange, type FieldTable, viewOf } from '../../base/index.ts';
import type { Draw } from './draw.ts';

/** A layout of the interface; all are big-endian. */
export interface ContextLayout {
  readonly name: string;
  readonly table: FieldTable;
}

/** A field of any depth: where its bits lie, the high ones first. */
interface HostileField {
  readonly name: string;
  readonly ranges: readonly BitRange[];
  readonly bits: number;
}

/** Outcome of the odd fields: for each, commands that succeeded nevertheless and those that did not. */
export type FieldCoverage = Map<string, { accepted: number; refused: number }>;

const fieldsByLayout = new Map<string, readonly HostileField[]>();

/** Returns the fields of a layout, including nested ones; of byte arrays the first eight bytes. */
export function fieldsOf({ name, table }: ContextLayout): readonly HostileField[] {
  const known = fieldsByLayout.get(name);
  if (known !== undefined) return known;
  const fields = collect(name, table, 0);
  fieldsByLayout.set(name, fields);
  return fields;
}

function collect(prefix: string, table: FieldTable, shiftBytes: number): HostileField[] {
  return Object.entries(table).flatMap(([key, field]): HostileField[] => {
    const name = `${prefix}.${key}`;
    switch (field.kind) {
      case 'number':
        return [fieldAt(name, field.pieces, shiftBytes)];
      case 'bigint':
        return [fieldAt(name, [field.range], shiftBytes)];
      case 'bytes':
        return [
          fieldAt(
            name,
            Array.from({ length: Math.min(8, field.lengthBytes) }, (_, at) => ({
              offset: field.offset + at,
              unitBytes: 1 as const,
              high: 7,
              low: 0,
            })),
            shiftBytes,
          ),
        ];
      case 'nested':
        return collect(name, field.layout.table, shiftBytes + field.offset);
      default:
        return [];
    }
  });
}

function fieldAt(name: string, ranges: readonly BitRange[], shiftBytes: number): HostileField {
  return {
    name,
    ranges: ranges.map((range) => ({ ...range, offset: range.offset + shiftBytes })),
    bits: ranges.reduce((sum, { high, low }) => sum + high - low + 1, 0),
  };
}

/** Stores a value, the low bits of it in the last range. */
function store(view: DataView, { ranges }: HostileField, value: bigint): void {
  let left = value;
  for (const { offset, unitBytes, high, low } of ranges.toReversed()) {
    for (let bit = low; bit <= high; bit++) {
      const at = offset + unitBytes - 1 - (bit >> 3);
      const mask = 1 << (bit & 7);
      const byte = view.getUint8(at);
      view.setUint8(at, (left & 1n) === 1n ? byte | mask : byte & ~mask);
      left >>= 1n;
    }
  }
}

/**
 * Makes some fields of `box` odd, or none. @returns their names
 */
export function spoil(draw: Draw, layout: ContextLayout, box: Uint8Array): string[] {
  const { random } = draw;
  const chance = random.unit();
  if (chance < 0.45) return [];
  if (chance < 0.9) {
    const count = chance < 0.78 ? 1 : random.between(2, 3);
    const view = viewOf(box);
    return Array.from({ length: count }, () => {
      const field = draw.pick(fieldsOf(layout));
      store(view, field, oddValue(draw, field.bits));
      return field.name;
    });
  }
  if (chance < 0.98) draw.flip(box, random.between(1, 6));
  else box.set(draw.bytes(box.length));
  return [];
}

/** Nothing, all ones, one bit, something small, anything. */
function oddValue(draw: Draw, bits: number): bigint {
  const { random } = draw;
  const all = (1n << BigInt(bits)) - 1n;
  return draw.any(
    () => 0n,
    () => all,
    () => 1n << BigInt(random.below(bits)),
    () => BigInt(random.below(40)) & all,
    () => ((BigInt(random.uint32()) << 32n) | BigInt(random.uint32())) & all,
  );
}

export function noteFields(coverage: FieldCoverage, names: readonly string[], isAccepted: boolean): void {
  for (const name of names) {
    const counts = coverage.get(name) ?? { accepted: 0, refused: 0 };
    counts[isAccepted ? 'accepted' : 'refused']++;
    coverage.set(name, counts);
  }
}
