/**
 * Reason why a guest makes no progress, in words: it repeatedly reads a register that does not change, or waits for requests
 * that the device does not complete. A driver under development hangs in one of these two.
 *
 *     reads, writes ─► RegisterSpin ─┐
 *                                    ├─► a line for each wait that is longer than `waitNoticeMs`, once
 *     queue pairs ───► QueueWaits ───┘
 *
 * The model does not depend on it: it only observes, by the wall clock.
 */
import { bar0, commandNameOf, hcr, hcrGoOffset } from '../../abi/index.ts';
import { toHex, viewOf } from '../../base/index.ts';
import { operationNames, type QueuePair } from '../../hw/hca/index.ts';

/** A driver that polls now and then, and sleeps in between, does not spin. */
const spinReadsMin = 100;

const hex = (value: number): string => `0x${value.toString(16)}`;

/** Consecutive reads of one offset that all returned the same value. */
export class RegisterSpin {
  #bar = -1;
  #offset = -1;
  /** The read value, as the guest sees it. */
  #bytes = new Uint8Array(0);
  #readCount = 0;
  /** Time of the first check that saw these reads. */
  #sinceMs: number | undefined;
  #isReported = false;

  /** The guest has read these bytes. */
  read(bar: number, offset: number, bytes: Uint8Array): void {
    if (bar === this.#bar && offset === this.#offset && isSame(bytes, this.#bytes)) {
      this.#readCount++;
      return;
    }
    this.forget();
    this.#bar = bar;
    this.#offset = offset;
    this.#bytes = bytes.slice();
    this.#readCount = 1;
  }

  /** The guest did something else: later reads have another reason. */
  forget(): void {
    this.#bar = -1;
    this.#readCount = 0;
    this.#sinceMs = undefined;
    this.#isReported = false;
  }

  /** @returns the wait in words, once, after it has lasted for `limitMs` of wall time */
  sample(nowMs: number, limitMs: number): string | undefined {
    if (this.#readCount === 0 || this.#isReported) return undefined;
    this.#sinceMs ??= nowMs;
    const waitedMs = nowMs - this.#sinceMs;
    if (waitedMs < limitMs || this.#readCount < spinReadsMin) return undefined;
    this.#isReported = true;
    const times = `${this.#readCount} times in ${secondsText(waitedMs)}`;
    return `the guest has read ${this.#place()} ${times}, and nothing else; it stays ${this.#value()}`;
  }

  #place(): string {
    const name = this.#bar === 0 ? bar0.nameAt(this.#offset) : undefined;
    const within = name === undefined ? 0 : this.#offset - bar0.registers[name].offset;
    const place = `BAR${this.#bar} + ${hex(this.#offset)}`;
    if (name !== undefined) return `${name}${within === 0 ? '' : ` + ${hex(within)}`} (${place})`;
    return this.#bar === 0 ? `${place}, where no register is,` : place;
  }

  /** Registers of BAR0 are big-endian. */
  #value(): string {
    if (this.#bytes.length !== 4) return toHex(this.#bytes);
    const value = hex(viewOf(this.#bytes).getUint32(0));
    const isGo = this.#bar === 0 && this.#offset === bar0.registers.hcr.offset + hcrGoOffset;
    return isGo ? `${value}: ${this.#command()}` : value;
  }

  #command(): string {
    const view = new DataView(new ArrayBuffer(hcr.sizeBytes));
    view.setUint32(hcrGoOffset, viewOf(this.#bytes).getUint32(0));
    const opcode = hcr.fields.opcode.get(view, 0);
    const command = commandNameOf(opcode) ?? `the command ${hex(opcode)}`;
    return hcr.fields.go.get(view, 0) === 1
      ? `GO is set, ${command} has not ended`
      : `GO is clear, ${command} has ended`;
  }
}

interface OldestRequest {
  /** Identity of the request. */
  readonly request: number;
  readonly generation: number;
  readonly sinceMs: number;
  isReported: boolean;
}

/** The oldest request of each send queue that the device holds. */
export class QueueWaits {
  #oldest = new Map<number, OldestRequest>();

  /** @returns waits in words, each once, after they have lasted for `limitMs` of wall time */
  sample(rows: readonly QueuePair[], nowMs: number, limitMs: number): string[] {
    const pairs = rows.filter(({ recordCount }) => recordCount > 0);
    const before = this.#oldest;
    this.#oldest = new Map(pairs.map((pair) => [pair.qpn, keptOr(before.get(pair.qpn), pair, nowMs)]));
    return pairs.flatMap((pair) => {
      const oldest = this.#oldest.get(pair.qpn)!;
      if (oldest.isReported || nowMs - oldest.sinceMs < limitMs) return [];
      oldest.isReported = true;
      return [waitText(pair, nowMs - oldest.sinceMs)];
    });
  }
}

const keptOr = (kept: OldestRequest | undefined, { recordHead }: QueuePair, nowMs: number): OldestRequest =>
  kept?.request === recordHead.number && kept.generation === recordHead.generation
    ? kept
    : { request: recordHead.number, generation: recordHead.generation, sinceMs: nowMs, isReported: false };

function waitText(pair: QueuePair, waitedMs: number): string {
  const { recordHead, recordCount, qpn, sendCqn } = pair;
  const operation = operationNames[recordHead.opcode] ?? `opcode ${hex(recordHead.opcode)}`;
  const others = recordCount > 1 ? `, ${recordCount - 1} behind it` : '';
  return (
    `the ${operation} at ${recordHead.wqeCounter} of QP ${hex(qpn)}'s send queue (CQ ${hex(sendCqn)}${others}) ` +
    `waits ${reasonOf(pair)}, for ${secondsText(waitedMs)} by now`
  );
}

function reasonOf(pair: QueuePair): string {
  const {
    recordHead,
    remoteQpn,
    isWaitingRnr,
    rnrRetryCountMax,
    rnrRetriesLeft,
    retriesLeft,
    retryCountMax,
  } = pair;
  if (isWaitingRnr === 1) {
    const retries =
      rnrRetryCountMax === endlessRetries
        ? 'again and again'
        : `${rnrRetriesLeft} of ${rnrRetryCountMax} retries left`;
    return `for a receive at QP ${hex(remoteQpn)} of the peer (RNR NAK, ${retries})`;
  }
  if (recordHead.transmittedCycle <= recordHead.startedCycle) return 'to be sent';
  const answer = recordHead.isReadOrAtomic === 1 ? 'response' : 'acknowledgement';
  const timeout = pair.ackTimeoutCode === 0 ? 'no ACK time-out' : `ACK time-out code ${pair.ackTimeoutCode}`;
  return `for its ${answer} from QP ${hex(remoteQpn)} (${timeout}, ${retriesLeft} of ${retryCountMax} retries left)`;
}

/** RNR retry count that represents any number of retries (IBTA 9.7.5.2.8). */
const endlessRetries = 7;

const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

const isSame = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, index) => byte === right[index]);
