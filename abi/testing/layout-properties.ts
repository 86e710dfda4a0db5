/**
 * Test support: reads and writes a whole layout through its hot-path accessors, so that a test can compare them with the
 * schema; and arbitrary values of a layout for property tests.
 */
import fc from 'fast-check';
import type { BigField, Field, FieldTable, InitialOf, NumberField } from '../../base/layout-field.ts';
import { valueBits } from '../../base/layout-field.ts';
import * as abi from '../index.ts';
import * as pci from '../pci/index.ts';
import type { AnyLayout } from './golden.ts';

const exported: readonly (readonly [string, unknown])[] = [...Object.entries(abi), ...Object.entries(pci)];

/** Every layout that abi exports, by export name. */
export const exportedLayouts: readonly (readonly [string, AnyLayout])[] = exported.flatMap(([name, value]) =>
  isLayout(value) ? [[name, value] as const] : [],
);

function isLayout(value: unknown): value is AnyLayout {
  return typeof value === 'object' && value !== null && 'docRows' in value && 'schema' in value;
}

interface AccessorNode {
  get?(view: DataView, base: number): unknown;
  set?(view: DataView, base: number, value: unknown): void;
  getNumber?(view: DataView, base: number): number;
  setNumber?(view: DataView, base: number, value: number): void;
  readonly fields?: Readonly<Record<string, AccessorNode>>;
  readonly element?: AccessorNode;
  readonly count?: number;
  readonly strideBytes?: number;
}

const nodesOf = (layout: AnyLayout): Readonly<Record<string, AccessorNode>> =>
  layout.fields as unknown as Readonly<Record<string, AccessorNode>>;

/** The decoded object, read field by field through the accessors. */
export function readByAccessors(layout: AnyLayout, view: DataView, base: number): Record<string, unknown> {
  return readNodes(nodesOf(layout), view, base);
}

function readNodes(nodes: Readonly<Record<string, AccessorNode>>, view: DataView, base: number) {
  return Object.fromEntries(Object.entries(nodes).map(([name, node]) => [name, readNode(node, view, base)]));
}

function readNode(node: AccessorNode, view: DataView, base: number): unknown {
  if (node.fields !== undefined) return readNodes(node.fields, view, base);
  if (node.element !== undefined) {
    const { element, count = 0, strideBytes = 0 } = node;
    return Array.from({ length: count }, (_, index) => readNode(element, view, base + index * strideBytes));
  }
  const value = node.get!(view, base);
  if (isExactAsNumber(value)) return BigInt(node.getNumber!(view, base));
  return value instanceof Uint8Array ? value.slice() : value;
}

/** Small 64-bit values use a number, as hot callers do; large ones use a bigint. */
const isExactAsNumber = (value: unknown): value is bigint =>
  typeof value === 'bigint' && value <= Number.MAX_SAFE_INTEGER;

/** Writes a decoded object field by field through the accessors. */
export function writeByAccessors(layout: AnyLayout, view: DataView, base: number, values: object): void {
  writeNodes(nodesOf(layout), view, base, values);
}

function writeNodes(
  nodes: Readonly<Record<string, AccessorNode>>,
  view: DataView,
  base: number,
  values: object,
): void {
  for (const [name, value] of Object.entries(values)) writeNode(nodes[name]!, view, base, value);
}

function writeNode(node: AccessorNode, view: DataView, base: number, value: unknown): void {
  if (node.fields !== undefined) {
    writeNodes(node.fields, view, base, value as object);
  } else if (node.element !== undefined) {
    const { element, strideBytes = 0 } = node;
    (value as unknown[]).forEach((item, index) => {
      writeNode(element, view, base + index * strideBytes, item);
    });
  } else if (isExactAsNumber(value)) {
    node.setNumber!(view, base, Number(value));
  } else {
    node.set!(view, base, value);
  }
}

/** Values that every field of the table accepts. */
export function arbitraryValues(table: FieldTable): fc.Arbitrary<InitialOf<FieldTable>> {
  const fields = Object.entries(table).filter(([, field]) => field.kind !== 'reserved');
  const record = fc.record(Object.fromEntries(fields.map(([name, field]) => [name, arbitraryOf(field)])));
  return record as fc.Arbitrary<InitialOf<FieldTable>>;
}

function arbitraryOf(field: Field): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'number':
      return storedBits(field).map((stored) => Number(stored << BigInt(field.alignmentBits)));
    case 'bigint':
      return storedBits(field).map((stored) => stored << BigInt(field.alignmentBits));
    case 'float':
      return fc.double({ noNaN: true });
    case 'bytes':
      return fc.uint8Array({ minLength: field.lengthBytes, maxLength: field.lengthBytes });
    case 'nested':
      return arbitraryValues(field.layout.table);
    case 'array':
      return fc.array(arbitraryOf(field.element), { minLength: field.count, maxLength: field.count });
    case 'reserved':
      return fc.constant(undefined);
  }
}

function storedBits(field: NumberField | BigField): fc.Arbitrary<bigint> {
  const max = (1n << BigInt(valueBits(field) - field.alignmentBits)) - 1n;
  return fc.oneof(fc.constantFrom(0n, 1n, max), fc.bigInt({ min: 0n, max }));
}
