/**
 * Decodes a work queue entry: the segments that its opcode and its QP's service require, and its errors. Source:
 * interface sheet 6.3 to 6.5.
 */
import {
  atomicSegment,
  bindSegment,
  controlSegment,
  datagramSegment,
  dataPointer,
  ethernetControlSegment,
  fastRegisterSegment,
  inlineHeader,
  invalidLkey,
  localInvalidateSegment,
  lsoHeader,
  maskedCompareSwapSegment,
  mlxControlSegment,
  remoteAddressSegment,
  ServiceType,
  srqNextSegment,
  type WqeSegment,
  type WqeTransport,
  wqeOpcodeRows,
  wqeUnitBytes,
} from '../abi/index.ts';
import { toHex, viewOf } from '../base/index.ts';
import { type AnyLayout, anyLayout, fieldsSetIn } from './layout-fields.ts';
import type { TraceSection } from './trace-event.ts';

/** A segment with a layout, or inline data. */
export interface WqePart {
  readonly title: string;
  readonly layout: AnyLayout;
  readonly offset: number;
  /** Bytes of inline data after the header. */
  readonly inlineBytes: number;
}

export interface WalkedWqe {
  readonly opcode: number;
  /** Undefined for an opcode that is not in the table. */
  readonly name: string | undefined;
  readonly sizeBytes: number;
  readonly parts: readonly WqePart[];
  /** Why the WQE cannot be executed; undefined if it is sound. */
  readonly flaw: { readonly rule: 'wqe-opcode' | 'wqe-size'; readonly text: string } | undefined;
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

const transportOf: { readonly [service: number]: WqeTransport } = {
  [ServiceType.RC]: 'RC',
  [ServiceType.UC]: 'UC',
  [ServiceType.UD]: 'UD',
  [ServiceType.XRC]: 'XRC',
  [ServiceType.MLX]: 'MLX',
};

const controls: { readonly [transport: string]: AnyLayout } = {
  MLX: anyLayout(mlxControlSegment),
  RAW: anyLayout(ethernetControlSegment),
};

const { fields: control } = controlSegment;

/** Bytes of a send WQE by its own size field; 0 if that field is 0. */
export const sendWqeBytes = (head: DataView, offset: number): number =>
  control.ds.get(head, offset) * wqeUnitBytes;

export const ownerBitOf = (head: DataView, offset: number): number => control.owner.get(head, offset);

/** @param isRaw whether the QP is an MLX QP but not a special one: raw packets, Ethernet rings */
export function walkSendWqe(wqe: Uint8Array, serviceType: number, isRaw: boolean): WalkedWqe {
  const view = viewOf(wqe);
  const opcode = control.opcode.get(view, 0);
  const row = wqeOpcodeRows[opcode];
  const transport = isRaw ? 'RAW' : (transportOf[serviceType] ?? 'RC');
  const layout = controls[transport] ?? anyLayout(controlSegment);
  const parts: WqePart[] = [{ title: 'control', layout, offset: 0, inlineBytes: 0 }];
  const sizeBytes = sendWqeBytes(view, 0);
  const walked = { opcode, name: row?.name, sizeBytes, parts };
  if (row === undefined)
    return { ...walked, flaw: { rule: 'wqe-opcode', text: `opcode 0x${opcode.toString(16)}` } };
  if (!row.transports.includes(transport))
    return { ...walked, flaw: { rule: 'wqe-opcode', text: `${row.name} on a QP of service ${transport}` } };
  let offset = layout.sizeBytes;
  const take = (title: string, segment: AnyLayout, inlineBytes = 0): void => {
    parts.push({ title, layout: segment, offset, inlineBytes });
    offset += Math.ceil((segment.sizeBytes + inlineBytes) / wqeUnitBytes) * wqeUnitBytes;
  };
  if (transport === 'UD' && row.takesDatagram) take('datagram', anyLayout(datagramSegment));
  for (const name of row.segments) {
    if (name === 'data') continue;
    const header =
      name === 'lso' && offset + 4 <= wqe.length ? lsoHeader.fields.headerBytes.get(view, offset) : 0;
    take(name, fixedSegments[name], header);
  }
  if (offset > sizeBytes) {
    parts.splice(1);
    const text = `${row.name} of ${sizeBytes} bytes, but its segments need ${offset}`;
    return { ...walked, flaw: { rule: 'wqe-size', text } };
  }
  if (row.segments.includes('data')) parts.push(...walkData(wqe, offset, Math.min(sizeBytes, wqe.length)));
  return { ...walked, flaw: undefined };
}

/** Data pointers and inline segments from `start` to `end`. */
function walkData(wqe: Uint8Array, start: number, end: number): WqePart[] {
  const view = viewOf(wqe);
  const parts: WqePart[] = [];
  for (let offset = start; offset + wqeUnitBytes <= end; ) {
    const isInline = inlineHeader.fields.isInline.get(view, offset) === 1;
    const inlineBytes = isInline ? inlineHeader.fields.byteCount.get(view, offset) : 0;
    const layout = isInline ? anyLayout(inlineHeader) : anyLayout(dataPointer);
    parts.push({ title: isInline ? 'inline' : 'data', layout, offset, inlineBytes });
    offset += Math.ceil((layout.sizeBytes + inlineBytes) / wqeUnitBytes) * wqeUnitBytes;
  }
  return parts;
}

/** A receive WQE: for an SRQ first its link, then a list of data pointers that ends at the stride or at the invalid key. */
export function walkReceiveWqe(wqe: Uint8Array, isShared: boolean): WqePart[] {
  const view = viewOf(wqe);
  const parts: WqePart[] = isShared
    ? [{ title: 'next', layout: anyLayout(srqNextSegment), offset: 0, inlineBytes: 0 }]
    : [];
  const { byteCount, lkey } = dataPointer.fields;
  for (
    let offset = parts.length * wqeUnitBytes;
    offset + wqeUnitBytes <= wqe.length;
    offset += wqeUnitBytes
  ) {
    if (lkey.get(view, offset) === invalidLkey && byteCount.get(view, offset) === 0) break;
    parts.push({ title: 'data', layout: anyLayout(dataPointer), offset, inlineBytes: 0 });
  }
  return parts;
}

const shownInlineBytes = 32;

/** The parts as sections of a trace event. */
export function sectionsOf(wqe: Uint8Array, parts: readonly WqePart[]): TraceSection[] {
  return parts.map(({ title, layout, offset, inlineBytes }) => {
    const fields = fieldsSetIn(layout, wqe, offset);
    if (inlineBytes === 0) return { title, fields };
    const from = offset + layout.sizeBytes;
    const data = wqe.subarray(from, from + Math.min(inlineBytes, shownInlineBytes));
    const more = inlineBytes > shownInlineBytes ? '…' : '';
    return { title, fields: [...fields, { name: 'bytes', value: toHex(data) + more, valueName: undefined }] };
  });
}
