/**
 * A shadow of every byte of every area: each byte that is found later is explained by a request that was allowed to write
 * it, at a time at which it could.
 *
 *     what may lie there ◄─ the program's own fills ◄─ peers' WRITEs ◄─ own READs, atomics, receives
 *
 * A write whose request began at b and had ended at e may be what is found at time t unless b > t, or another write that
 * certainly took place began after e and had ended before t. Requests that failed may have written any part of what they carried.
 */
import { psPerUs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import { isDisordered } from '../cable-faults.ts';
import type { Observations } from '../observations.ts';
import type { Played } from '../run-story.ts';
import { isOnDemandArea, patternInto, type SgePlan, type Story } from '../story.ts';
import { grhBytes, isAtomicVerb } from '../verbs.ts';
import { firstDifference, gatheredOf, isGivenBack } from './contents.ts';
import { backOf, type Flow, flowsOf } from './traffic.ts';
import { goneOfWindow } from './windows.ts';

/** A write that may have put bytes into an area. */
interface Writing {
  readonly offset: number;
  readonly length: number;
  /** Undefined: any bytes. */
  readonly bytes: Uint8Array | undefined;
  readonly fromPs: number;
  readonly toPs: number;
  /** Whether all of its bytes are certainly there once it has ended. */
  readonly isCertain: boolean;
  readonly by: string;
  /** Whether the program itself wrote it. */
  readonly isOwn?: true;
}

export function judgeBytes(played: Played): string[] {
  return new Shadow(played).judge();
}

class Shadow {
  readonly #played: Played;
  /** Writings of each area, by `program.area`. */
  readonly #writings = new Map<string, Writing[]>();
  readonly #found: string[] = [];

  constructor(played: Played) {
    this.#played = played;
  }

  judge(): string[] {
    this.#addFills();
    this.#addGivenBack();
    const flows = flowsOf(this.#played);
    for (const flow of flows) {
      this.#addRemote(flow, backOf(flows, flow));
      this.#addArrivals(flow);
      this.#addOwn(flow);
    }
    this.#addUnknown();
    for (const flow of flows) {
      this.#judgeArrivals(flow);
      this.#judgeReads(flow);
    }
    this.#judgePeeks();
    this.#judgeFinals();
    return this.#found;
  }

  /** A device does not write to a region after its deregistration. */
  #add(program: number, area: number, asked: Writing): void {
    const gone = this.#goneOf(program, area);
    if (gone < asked.fromPs && asked.isOwn !== true) return;
    const writing = asked.isOwn ? asked : { ...asked, toPs: Math.min(asked.toPs, gone) };
    const key = `${program}.${area}`;
    const list = this.#writings.get(key);
    if (list === undefined) this.#writings.set(key, [writing]);
    else list.push(writing);
  }

  /** When the area was deregistered; infinity: never. */
  #goneOf(program: number, area: number): number {
    const found = this.#played.seen[program]?.deregistrations.find((gone) => gone.area === area);
    return found?.toPs ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Whether a program can have lost data received into these buffers before it read them: it overwrites regions that it
   * has deregistered.
   */
  #isStale(program: number, sges: readonly SgePlan[], fromPs: number, atPs: number): boolean {
    return (
      sges.some(({ area }) => this.#goneOf(program, area) <= atPs) ||
      isGivenBack(this.#played.seen[program]!, sges, fromPs, atPs)
    );
  }

  #addFills(): void {
    for (const [program, { areas }] of this.#played.story.programs.entries())
      for (const { area, fill, atPs } of this.#played.seen[program]?.fills ?? []) {
        const bytes = new Uint8Array(areas[area]!.lengthBytes);
        patternInto(bytes, program, area, fill);
        const at = {
          offset: 0,
          length: bytes.length,
          bytes,
          fromPs: atPs,
          toPs: atPs,
          isCertain: true,
          isOwn: true,
        } as const;
        this.#add(program, area, { ...at, by: `fill ${fill}` });
      }
  }

  #addGivenBack(): void {
    for (const [program, seen] of this.#played.seen.entries())
      for (const { area, offset, length, atPs } of seen?.givenBack ?? [])
        this.#add(program, area, {
          offset,
          length,
          bytes: new Uint8Array(length),
          fromPs: atPs,
          toPs: atPs + forgettingPs,
          isCertain: true,
          isOwn: true,
          by: 'zeros',
        });
  }

  #gathered(program: number, sges: readonly SgePlan[], atPs: number): Uint8Array {
    return gatheredOf(this.#played.seen[program]!, program, sges, atPs);
  }

  #addRemote(flow: Flow, back: Flow): void {
    for (const history of flow.sends) {
      const { plan, post, end, lengthBytes } = history;
      const isWrite = plan.opcode === ibv.IBV_WR_RDMA_WRITE || plan.opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM;
      if (!isWrite || plan.remote === undefined || lengthBytes === 0) continue;
      // The responder refuses an access that a window's key does not allow, or whose window no longer exists, before it
      // touches memory.
      const goneAt = goneOfWindow(flow, back, history);
      if (post.fromPs >= goneAt || (plan.through !== undefined && plan.flaw !== 'none')) continue;
      const { area, offset } = plan.remote;
      this.#add(flow.to.program, area, {
        offset,
        length: lengthBytes,
        // If a buffer exceeds its region, the part within the region may have been sent.
        bytes:
          plan.flaw === 'localBounds' ? undefined : this.#gathered(flow.from.program, plan.sges, post.fromPs),
        fromPs: post.fromPs,
        toPs: this.#mayComeAgain(flow)
          ? Number.POSITIVE_INFINITY
          : Math.min(goneAt, this.#lastTakenPs(flow, post.id, end?.toPs)),
        isCertain: this.#isCertain(flow, post.id),
        by: `WRITE ${plan.id}`,
      });
    }
  }

  /**
   * Whether a packet of an unreliable connection may be executed again, or late, because the cable duplicates or delays
   * it.
   */
  #mayComeAgain({ from }: Flow): boolean {
    return from.plan.transport !== 'RC' && isDisordered(this.#played.story);
  }

  /**
   * Latest instant at which the last packet of a request takes effect: its completion, if that tells that everything
   * has arrived. For an unreliable request the completion only tells that it has left; packets of a failed one that the
   * cable held back may arrive at any time.
   */
  #lastTakenPs(flow: Flow, id: number, endPs = Number.POSITIVE_INFINITY): number {
    const succeededPs = this.#endOf(flow, id);
    if (succeededPs !== undefined && flow.from.plan.transport === 'RC') return succeededPs;
    return isDisordered(this.#played.story) ? Number.POSITIVE_INFINITY : (succeededPs ?? endPs) + onItsWayPs;
  }

  /** A request without a completion of its own has ended with the next successful one of its queue. */
  #endOf({ sends }: Flow, id: number): number | undefined {
    const place = sends.findIndex(({ plan }) => plan.id === id);
    return sends.slice(place).find(({ end }) => end?.status === ibv.IBV_WC_SUCCESS)?.end?.toPs;
  }

  #isCertain(flow: Flow, id: number): boolean {
    const { sends, from } = flow;
    const history = sends.find(({ plan }) => plan.id === id)!;
    const isReliable = from.plan.transport === 'RC';
    if (history.end !== undefined && history.end.status !== ibv.IBV_WC_SUCCESS) return false;
    return isReliable && this.#endOf(flow, id) !== undefined;
  }

  #addArrivals(flow: Flow): void {
    const extra = flow.to.plan.transport === 'UD' ? grhBytes : 0;
    for (const [index, { plan, end }] of flow.arrivals.entries()) {
      const sent = flow.brought[index];
      const posted = flow.to.seen.receives.find(({ id }) => id === plan.id)!;
      const isGood = end.status === ibv.IBV_WC_SUCCESS && sent !== undefined;
      const isStale = this.#isStale(flow.to.program, plan.sges, posted.fromPs, end.toPs);
      const hasPayload = sent !== undefined && sent.plan.opcode !== ibv.IBV_WR_RDMA_WRITE_WITH_IMM;
      const bytes =
        isGood && hasPayload && !isStale
          ? this.#gathered(flow.from.program, sent.plan.sges, sent.post.fromPs)
          : undefined;
      // A message that lost a packet leaves bytes in the buffer, which a shorter message there does not erase.
      if (mayBeCutShort(this.#played.story, flow))
        this.#scatter(
          flow.to.program,
          plan.sges,
          undefined,
          0,
          posted.fromPs,
          end.toPs,
          `receive ${plan.id}`,
        );
      if (isGood && !hasPayload) continue;
      this.#scatter(flow.to.program, plan.sges, bytes, extra, posted.fromPs, end.toPs, `receive ${plan.id}`);
    }
  }

  /** Adds bytes written to a list of buffers, one after the other; the first `skipped` of them are unknown. */
  #scatter(
    program: number,
    sges: readonly SgePlan[],
    bytes: Uint8Array | undefined,
    skipped: number,
    fromPs: number,
    toPs: number,
    by: string,
  ): void {
    let at = -skipped;
    for (const { area, offset, length } of sges) {
      const wild = Math.min(length, Math.max(0, -at));
      if (wild > 0)
        this.#add(program, area, {
          offset,
          length: wild,
          bytes: undefined,
          fromPs,
          toPs,
          isCertain: false,
          by,
        });
      const from = at + wild;
      const count =
        bytes === undefined ? length - wild : Math.min(length - wild, Math.max(0, bytes.length - from));
      if (count > 0)
        this.#add(program, area, {
          offset: offset + wild,
          length: count,
          bytes: bytes?.subarray(from, from + count),
          fromPs,
          toPs,
          isCertain: bytes !== undefined,
          by,
        });
      at += length;
    }
  }

  /** Adds READs and atomics: their data are the bytes that the program saw at the completion. */
  #addOwn(flow: Flow): void {
    for (const { plan, post, end } of flow.sends) {
      if (plan.opcode !== ibv.IBV_WR_RDMA_READ && !isAtomicVerb(plan.opcode)) continue;
      const isKnown =
        end?.bytes !== undefined && !this.#isStale(flow.from.program, plan.sges, post.fromPs, end.toPs);
      const bytes = isKnown ? Buffer.from(end.bytes!, 'base64') : undefined;
      const toPs = end?.toPs ?? Number.POSITIVE_INFINITY;
      this.#scatter(flow.from.program, plan.sges, bytes, 0, post.fromPs, toPs, `request ${plan.id}`);
    }
  }

  /** Receives that were never seen to end, and programs without a result: they may have brought anything. */
  #addUnknown(): void {
    for (const [program, seen] of this.#played.seen.entries()) {
      if (seen === null) continue;
      const ended = new Set(
        seen.completions.filter(({ status }) => status === ibv.IBV_WC_SUCCESS).map(({ id }) => id),
      );
      const { early, steps } = this.#played.story.programs[program]!;
      for (const step of [...early, ...steps]) {
        if (step.do !== 'receive' && step.do !== 'receiveShared') continue;
        for (const { id, sges } of step.wrs)
          if (!ended.has(id))
            this.#scatter(program, sges, undefined, 0, 0, Number.POSITIVE_INFINITY, `receive ${id}`);
      }
    }
  }

  #judgeArrivals(flow: Flow): void {
    const extra = flow.to.plan.transport === 'UD' ? grhBytes : 0;
    for (const [index, { plan, end }] of flow.arrivals.entries()) {
      const sent = flow.brought[index];
      if (
        sent === undefined ||
        end.bytes === undefined ||
        sent.plan.opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM
      )
        continue;
      const posted = flow.to.seen.receives.find(({ id }) => id === plan.id)!;
      if (this.#isStale(flow.to.program, plan.sges, posted.fromPs, end.toPs)) continue;
      const due = this.#gathered(flow.from.program, sent.plan.sges, sent.post.fromPs);
      const found = Buffer.from(end.bytes, 'base64').subarray(extra, extra + due.length);
      const wrong = firstDifference(found, due);
      if (wrong >= 0)
        this.#found.push(
          `receive ${plan.id} (program ${flow.to.program}) of request ${sent.plan.id} has wrong bytes from ${wrong} of ${due.length}`,
        );
    }
  }

  #judgeReads(flow: Flow): void {
    for (const { plan, post, end } of flow.sends) {
      if (plan.opcode !== ibv.IBV_WR_RDMA_READ || end?.bytes === undefined || plan.remote === undefined)
        continue;
      if (this.#isStale(flow.from.program, plan.sges, post.fromPs, end.toPs)) continue;
      const { area, offset } = plan.remote;
      const bytes = Buffer.from(end.bytes, 'base64');
      this.#judgeRange(flow.to.program, area, offset, bytes, post.fromPs, end.toPs, `READ ${plan.id}`);
    }
  }

  #judgePeeks(): void {
    for (const [program, seen] of this.#played.seen.entries())
      for (const { area, offset, atPs, bytes } of seen?.peeks ?? [])
        this.#judgeRange(program, area, offset, Buffer.from(bytes, 'base64'), atPs, atPs, 'a look');
  }

  #judgeFinals(): void {
    for (const [program, seen] of this.#played.seen.entries())
      for (const [area, bytes] of (seen?.finals ?? []).entries()) {
        const { finalPs } = seen as Observations;
        this.#judgeRange(program, area, 0, Buffer.from(bytes, 'base64'), finalPs, finalPs, 'the end');
      }
  }

  /** Judges whether the bytes found in [offset, …) between two instants can have been there. */
  #judgeRange(
    program: number,
    area: number,
    offset: number,
    found: Uint8Array,
    fromPs: number,
    toPs: number,
    where: string,
  ): void {
    const from = Math.max(offset, this.#played.story.programs[program]!.areas[area]!.atomicWords * 8);
    const end = offset + found.length;
    const touching = (this.#writings.get(`${program}.${area}`) ?? []).filter(
      (writing) => writing.offset < end && writing.offset + writing.length > from && writing.fromPs <= toPs,
    );
    const cuts = new Set([from, end]);
    for (const writing of touching) {
      cuts.add(Math.max(from, writing.offset));
      cuts.add(Math.min(end, writing.offset + writing.length));
    }
    const edges = [...cuts]
      .filter((cut) => cut >= from && cut <= end)
      .toSorted((left, right) => left - right);
    for (const [index, start] of edges.slice(0, -1).entries()) {
      const stop = edges[index + 1]!;
      const covering = touching.filter(
        (writing) => writing.offset <= start && writing.offset + writing.length >= stop,
      );
      const possible = covering.filter((writing) => !isOverwritten(writing, covering, fromPs));
      const wrong = firstUnexplained(found.subarray(start - offset, stop - offset), possible, start);
      if (wrong < 0) continue;
      const names = possible.map(({ by }) => by).join(', ');
      this.#found.push(
        `program ${program}, area ${area}, byte ${start + wrong}, at ${where}: not of ${names === '' ? 'anything' : names}`,
      );
      return;
    }
  }
}

/**
 * Time for which a peer's WRITE may still end in pages that were returned: a doorbell makes the device forget them, and
 * the call does not wait for it (docs/explanation/memory.md).
 */
const forgettingPs = 200 * psPerUs;

/**
 * Time for which a packet that has left may wait at the far end: 64 KiB of receive buffers take 2.7 ms if the device
 * writes 64 bytes to memory every 2.6 µs, as slowly as in any story.
 */
const onItsWayPs = 5000 * psPerUs;

/** Datagrams and packets of unreliable connections that meet a page which is not there are lost. */
const mayBeCutShort = (story: Story, { from, to }: Flow): boolean =>
  from.plan.transport === 'UC' ||
  (from.plan.transport === 'UD' && story.programs[to.program]!.areas.some(isOnDemandArea));

const isOverwritten = (writing: Writing, all: readonly Writing[], atPs: number): boolean =>
  all.some(
    (later) => later !== writing && later.isCertain && later.fromPs > writing.toPs && later.toPs <= atPs,
  );

/** First byte that no write explains; -1: all are explained. */
function firstUnexplained(found: Uint8Array, possible: readonly Writing[], start: number): number {
  if (possible.some(({ bytes }) => bytes === undefined)) return -1;
  for (let at = 0; at < found.length; at++) {
    const isExplained = possible.some(({ bytes, offset }) => bytes![start - offset + at] === found[at]);
    if (!isExplained) return at;
  }
  return -1;
}
