/** The refusal that explains an error completion if QP numbers are ambiguous: both hosts assign the same ones. */
import { expect, it } from 'vitest';
import { CqeSyndrome } from '../../abi/index.ts';
import { switchDrops } from '../../hw/switch/index.ts';
import {
  packetLost,
  type Timeline,
  type TimelineKindName,
  type TimelineRecord,
} from '../../machine/timeline/index.ts';
import { pairsOf } from '../../machine/topology/index.ts';
import { Opcode } from '../../wire/index.ts';
import { failuresOf, lossesOf } from './why.ts';

const qpn = 5;
const nak = 0x61;
/** Check number of the QP's access rights. */
const qpRight = 2;

const record = (kind: TimelineKindName, process: string, ...values: number[]): TimelineRecord =>
  ({ kind, values, atPs: 0, durationPs: 0, track: { process, name: '' } }) as unknown as TimelineRecord;

const refused = (node: number, ownQpn: number, psn: number): TimelineRecord =>
  record('requestRefused', `hca${node}`, ownQpn, qpRight, Opcode.RC_RDMA_WRITE_ONLY, psn, 2, 0, qpn);
const nakTo = (node: number, psn: number): TimelineRecord =>
  record('packet', `hca${node}`, Opcode.RC_ACKNOWLEDGE, qpn, psn, 0, 0, nak);
const failed = (node: number): TimelineRecord =>
  record('errorCompletion', `hca${node}`, qpn, 0, CqeSyndrome.REMOTE_INVAL_REQ_ERR, 1);

/** The responder that the first failure of host 0 is traced to. */
function responderOf(...records: TimelineRecord[]): string | undefined {
  const timeline = { topology: pairsOf(2), records: () => records.values() } as unknown as Timeline;
  const [failure] = failuresOf(timeline, () => undefined).filter(({ node }) => node === 0);
  return failure!.reasons[0]?.where;
}

it('a refusal whose NAK arrived over the cable belongs to the far end, despite later refusals here', () => {
  const own = refused(0, 9, 33);
  const far = refused(1, 7, 10);
  const farAnswered = [nakTo(1, 33), failed(1)];
  expect(responderOf(far, own, nakTo(0, 10), failed(0), ...farAnswered)).toBe('hca1 responder of QP 0x7');
  expect(responderOf(own, far, ...farAnswered, nakTo(0, 10), failed(0))).toBe('hca1 responder of QP 0x7');
});

it('a refusal without a NAK belongs to a QP that is connected to its own host', () => {
  const far = refused(1, 7, 33);
  expect(responderOf(refused(0, 9, 10), far, failed(0))).toBe('hca0 responder of QP 0x9');
});

it('packets that a switch drops are losses, but not frames that need not go further', () => {
  const packet = [Opcode.RC_RDMA_WRITE_ONLY, qpn, 7, 64] as const;
  const records = [
    record('switchDrop', 'switch4', switchDrops.indexOf('queueFull'), 2, 1, ...packet, 1),
    record('switchDrop', 'switch4', switchDrops.indexOf('ownPort'), 2, 0, ...packet, 0),
    record('packet', 'switch4', ...packet, packetLost),
  ];
  const timeline = { records: () => records.values() } as unknown as Timeline;
  const { count, first } = lossesOf(timeline);
  expect(count).toBe(2);
  expect(first.map(({ where, text }) => `${where}: ${text}`)).toEqual([
    'switch4, port 2: RC_RDMA_WRITE_ONLY to QP 0x5, PSN 7, 64 bytes, dropped: its queue has reached alpha × free',
    'cable to switch4: RC_RDMA_WRITE_ONLY to QP 0x5, PSN 7, 64 bytes, never arrived',
  ]);
});

it('a refusal with neither is not the cause', () => {
  expect(responderOf(refused(1, 7, 33), failed(0))).toBeUndefined();
});

it('a flushed request is explained by the status of the failed one, including an unbound window', () => {
  const ended = (wqe: number, syndrome: number) => record('errorCompletion', 'hca0', qpn, wqe, syndrome, 1);
  const records = [ended(0, CqeSyndrome.MW_BIND_ERR), ended(1, CqeSyndrome.WR_FLUSH_ERR)];
  const timeline = { records: () => records.values() } as unknown as Timeline;
  const [bound, flushed] = failuresOf(timeline, () => undefined);
  expect(bound!.status).toBe('MW_BIND_ERR');
  expect(flushed!.reasons[0]!.text).toContain('ended with MW_BIND_ERR');
});

it.each([
  [CqeSyndrome.TRANSPORT_RETRY_EXC_ERR, '9.7.6.1.3', 'timeout and retryCnt of the QP'],
  [CqeSyndrome.RNR_RETRY_EXC_ERR, '9.7.5.2.8', 'rnrRetry of the QP'],
])('exhausted retries name the clause of timeouts or of RNR NAKs', (syndrome, clause, heldTo) => {
  const records = [record('errorCompletion', 'hca0', qpn, 0, syndrome, 1)];
  const timeline = { records: () => records.values() } as unknown as Timeline;
  const [failure] = failuresOf(timeline, () => undefined);
  expect(failure!.reasons[0]).toMatchObject({ clause: `IBTA vol 1, ${clause}`, heldTo });
});
