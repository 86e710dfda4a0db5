/**
 * Test support: splits a WQE into segments by the opcode table, and rebuilds it from the decoded values alone. Bits that
 * survive the round trip are covered by the segment layouts.
 */
import { FieldValueError } from '../../base/assert.ts';
import {
  atomicSegment,
  bindSegment,
  controlSegment,
  datagramSegment,
  dataPointer,
  fastRegisterSegment,
  inlineHeader,
  inlinePieces,
  localInvalidateSegment,
  lsoHeader,
  maskedCompareSwapSegment,
  mlxControlSegment,
  remoteAddressSegment,
  ServiceType,
  type WqeSegment,
  wqeOpcodeRows,
} from '../index.ts';
import { type AnyLayout, anyLayout } from './golden.ts';

/** One segment found in a WQE. */
export interface WalkedSegment {
  readonly name: string;
  readonly offset: number;
  readonly lengthBytes: number;
  /** Contents of an inline segment; undefined for all others. */
  readonly inlineData: Uint8Array | undefined;
  /** Writes the segment from its decoded values. */
  readonly rewrite: (wqe: Uint8Array) => void;
}

const fixedSegments: { readonly [Name in Exclude<WqeSegment, 'data'>]: AnyLayout } = {
  remoteAddress: anyLayout(remoteAddressSegment),
  atomic: anyLayout(atomicSegment),
  maskedCompareSwap: anyLayout(maskedCompareSwapSegment),
  lso: anyLayout(lsoHeader),
  bind: anyLayout(bindSegment),
  localInvalidate: anyLayout(localInvalidateSegment),
  fastRegister: anyLayout(fastRegisterSegment),
};

/** The segments of a send WQE of a QP of the given service type. */
export function walkWqe(wqe: Uint8Array, serviceType: number): WalkedSegment[] {
  const isMlx = serviceType === ServiceType.MLX;
  const control = isMlx ? anyLayout(mlxControlSegment) : anyLayout(controlSegment);
  const segments = [segmentAt('control', control, wqe, 0)];
  const { opcode, ds } = controlSegment.decode(wqe);
  const row = wqeOpcodeRows[opcode];
  if (row === undefined) throw new FieldValueError('WQE opcode', opcode, 'an opcode of the table');
  let offset = control.sizeBytes;
  const take = (name: string, layout: AnyLayout): void => {
    segments.push(segmentAt(name, layout, wqe, offset));
    offset += layout.sizeBytes;
  };
  if (serviceType === ServiceType.UD && row.takesDatagram) {
    take('datagram', anyLayout(datagramSegment));
  }
  for (const name of row.segments) if (name !== 'data') take(name, fixedSegments[name]);
  if (row.segments.includes('data')) segments.push(...walkData(wqe, offset, ds * 16));
  return segments;
}

/** Data pointers and inline segments from `start` to `end`. */
export function walkData(wqe: Uint8Array, start: number, end: number): WalkedSegment[] {
  const segments: WalkedSegment[] = [];
  let offset = start;
  while (offset < end) {
    const isInline = inlineHeader.decode(wqe, offset).isInline === 1;
    const segment = isInline ? inlineAt(wqe, offset) : segmentAt('data', anyLayout(dataPointer), wqe, offset);
    segments.push(segment);
    offset = nextOffset(offset + segment.lengthBytes);
  }
  return segments;
}

/** After inline data the WQE continues at the next multiple of 16, which includes every boundary of 64: a cut needs no extra rule. */
const nextOffset = (end: number): number => Math.ceil(end / 16) * 16;

function segmentAt(name: string, layout: AnyLayout, wqe: Uint8Array, offset: number): WalkedSegment {
  const values = layout.decode(wqe, offset);
  const rewrite = (target: Uint8Array): void => layout.encodeInto(values, target, offset);
  return { name, offset, lengthBytes: layout.sizeBytes, inlineData: undefined, rewrite };
}

function inlineAt(wqe: Uint8Array, offset: number): WalkedSegment {
  const values = inlineHeader.decode(wqe, offset);
  const from = offset + inlineHeader.sizeBytes;
  const data = wqe.slice(from, from + values.byteCount);
  const rewrite = (target: Uint8Array): void => {
    inlineHeader.encodeInto(values, target, offset);
    target.set(data, from);
  };
  const lengthBytes = inlineHeader.sizeBytes + values.byteCount;
  return { name: 'inline', offset, lengthBytes, inlineData: data, rewrite };
}

/** The WQE rebuilt from its decoded segments, over zeros. */
export function rewritten(segments: readonly WalkedSegment[], lengthBytes: number): Uint8Array {
  const wqe = new Uint8Array(lengthBytes);
  for (const segment of segments) segment.rewrite(wqe);
  return wqe;
}

/** Whether inline segments are cut as the 64-byte rule demands. */
export function isCutByRule(segments: readonly WalkedSegment[]): boolean {
  const inline = segments.filter(({ name }) => name === 'inline');
  const total = inline.reduce((sum, { lengthBytes }) => sum + lengthBytes - inlineHeader.sizeBytes, 0);
  const pieces = inlinePieces(inline[0]?.offset ?? 0, total);
  return (
    pieces.length === inline.length &&
    pieces.every(({ headerOffset, byteCount }, at) => {
      const segment = inline[at]!;
      return segment.offset === headerOffset && segment.lengthBytes === byteCount + inlineHeader.sizeBytes;
    })
  );
}
