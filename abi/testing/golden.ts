/**
 * Test support: the golden captures, bytes that the stock Linux driver and libmlx4 put before a ConnectX-3 class device. They
 * are in `reference/golden`, described in its README. If they are missing, reading throws: no test is skipped.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { Layout } from '../../base/layout.ts';
import type { FieldTable } from '../../base/layout-field.ts';

interface LineBase {
  /** File name without its ending, and line number: identifies the line in a failing test. */
  readonly file: string;
  readonly line: number;
}

export interface HcrLine extends LineBase {
  readonly kind: 'hcr';
  readonly op: string;
  readonly opcode: string;
  readonly op_mod: number;
  readonly in_mod: string;
  readonly event: number;
  readonly t: number;
  readonly go_dword: string;
  readonly token: string;
  readonly in_param: string;
  readonly out_param: string;
  readonly input_len?: number;
  readonly input?: string;
  readonly device_output_len?: number;
  readonly device_output?: string;
  readonly status: number;
}

interface SendDoorbellLine extends LineBase {
  readonly kind: 'send_doorbell';
  readonly uar_page: number;
  readonly offset: string;
  readonly bytes: string;
  readonly qpn: number;
}

interface BlueFlameLine extends LineBase {
  readonly kind: 'blueflame';
  readonly bar2_offset: string;
  readonly page: number;
  readonly offset: string;
  readonly bytes: string;
  readonly write_sizes: readonly number[];
}

interface CqArmLine extends LineBase {
  readonly kind: 'cq_arm';
  readonly uar_page: number;
  readonly offset: string;
  readonly bytes: string;
  readonly cqn: number;
  readonly cmd: number;
  readonly sn: number;
  readonly ci: number;
}

interface EqDoorbellLine extends LineBase {
  readonly kind: 'eq_doorbell';
  readonly uar_page: number;
  readonly offset: string;
  readonly bytes: string;
  readonly eqn: number;
  readonly arm: number;
  readonly ci: number;
}

export interface WqeLine extends LineBase {
  readonly kind: 'wqe';
  readonly qpn: number;
  readonly qp_type: number;
  readonly index: number;
  readonly slot_offset: number;
  readonly slot_size: number;
  readonly opcode: string;
  readonly ds: number;
  readonly bytes: string;
}

interface ReceiveWqeLine extends LineBase {
  readonly kind: 'rq_wqe';
  readonly qpn: number;
  readonly srqn?: number;
  readonly index: number;
  readonly stride: number;
  readonly bytes: string;
}

interface DoorbellRecordLine extends LineBase {
  readonly kind: 'doorbell_record';
  readonly object: 'qp_rq' | 'srq' | 'cq';
  readonly num: number;
  readonly address: string;
  readonly bytes: string;
  readonly at: string;
}

interface MptLine extends LineBase {
  readonly kind: 'mpt';
  readonly index: number;
  /** Key, va and len of the access; absent if `source` is `icm`. */
  readonly key: string;
  readonly va: string;
  readonly len: number;
  readonly source?: 'icm';
  readonly bytes: string;
}

export interface MttLine extends LineBase {
  readonly kind: 'mtt';
  readonly object: 'eq' | 'cq' | 'qp' | 'srq' | 'mpt';
  readonly num: number;
  readonly mtt_offset: string;
  readonly log_page_size: number;
  readonly pages: number;
  readonly entries: string;
  readonly rq_log_count?: number;
  readonly rq_log_stride?: number;
  readonly rq_offset?: number | null;
  readonly sq_log_count?: number;
  readonly sq_log_stride?: number;
  readonly sq_offset?: number | null;
}

interface DeviceAnswerLine extends LineBase {
  readonly kind: 'device_answer';
  readonly op: string;
  readonly opcode: string;
  readonly bytes: string;
}

export type GoldenLine =
  | HcrLine
  | SendDoorbellLine
  | BlueFlameLine
  | CqArmLine
  | EqDoorbellLine
  | WqeLine
  | ReceiveWqeLine
  | DoorbellRecordLine
  | MptLine
  | MttLine
  | DeviceAnswerLine;

export const goldenFolder = fileURLToPath(new URL('../../reference/golden/', import.meta.url));

/** All lines of all captures, in the order of file names and of the device's view. */
export function readGolden(): GoldenLine[] {
  const files = readdirSync(goldenFolder).filter((name) => name.endsWith('.jsonl'));
  return files.sort().flatMap(readFile);
}

function readFile(name: string): GoldenLine[] {
  const text = readFileSync(`${goldenFolder}/${name}`, 'utf8').trimEnd();
  return text.split('\n').map((json, at) => {
    const line = JSON.parse(json) as GoldenLine;
    return { ...line, file: name.replace(/\.jsonl$/, ''), line: at + 1 };
  });
}

/** The lines of one kind, by its name. */
export function linesOf<K extends GoldenLine['kind']>(
  lines: readonly GoldenLine[],
  kind: K,
): Extract<GoldenLine, { kind: K }>[] {
  return lines.filter((line): line is Extract<GoldenLine, { kind: K }> => line.kind === kind);
}

/** Names a line in a failing test. */
export const placeOf = (line: GoldenLine): string => `${line.file}.jsonl:${line.line} ${line.kind}`;

/** A layout without its table type, for generic test code. */
export type AnyLayout = Layout<FieldTable>;

/** Forgets the table type of a layout; its values become a record. */
export function anyLayout<F extends FieldTable>(layout: Layout<F>): AnyLayout {
  return layout as unknown as AnyLayout;
}

/** Decodes and re-encodes from a zeroed buffer: equal only if the layout covers every bit that is set. */
export function reEncoded<F extends FieldTable>(
  layout: Layout<F>,
  hex: string,
): { got: string; want: string } {
  const { sizeBytes, decode, encodeInto } = anyLayout(layout);
  const lengthBytes = Math.max(sizeBytes, hex.length / 2);
  const original = fromHex(hex, lengthBytes);
  const again = new Uint8Array(lengthBytes);
  encodeInto(decode(original), again);
  return { got: toHex(again), want: toHex(original) };
}
