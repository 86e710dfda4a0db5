/**
 * Translations ahead: while the response engine works on a READ, the memory of the READs that come next is looked up,
 * so that several misses of keys and translations are in flight although answers are made one after the other.
 *
 *     ring of QPs that wait: [next] [2nd] … [n-th] [later] …
 *                              └─ the oldest READ of each ─► a port of the translator: its lines come on chip
 *
 * Nothing is refused here: the engine checks each access again when its turn has come. A QP is looked up once for each
 * place that it takes in the ring.
 */
import { type Cycles, NEVER } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import type { CostAttribution } from '../../costs/index.ts';
import { PENDING, RIGHT_REMOTE_READ, type TranslationPort, type Translator } from '../../memory/index.ts';
import type { QueuePair } from '../../objects/index.ts';
import { KIND_READ, type PendingResponses, type ResponderResources } from './responder-resources.ts';

/** Parts of the device that {@link ReadsAhead} uses. */
export interface ReadsAheadSetup {
  readonly domain: ClockDomain;
  readonly translator: Translator;
  readonly costs: CostAttribution | undefined;
}

/** One lookup: the bytes that a READ begins with. */
class Lookup {
  readonly port: TranslationPort;
  pair: QueuePair | undefined;
  /** Cycle of the next attempt; {@link NEVER}: it waits for a line. */
  readyCycle: Cycles = NEVER;
  psn = 0;
  key = 0;
  pd = 0;
  address = 0;
  addressTop = 0;

  constructor(port: TranslationPort) {
    this.port = port;
  }
}

export class ReadsAhead {
  readonly #domain: ClockDomain;
  readonly #costs: CostAttribution | undefined;
  readonly #resources: ResponderResources;
  readonly #lookups: readonly Lookup[];
  readonly #stage: number;
  /** How many QPs at the beginning of the ring were looked up, and the last of them. */
  #count = 0;
  #last: PendingResponses | undefined;

  constructor({ domain, translator, costs }: ReadsAheadSetup, resources: ResponderResources) {
    this.#domain = domain;
    this.#costs = costs;
    this.#resources = resources;
    this.#lookups = translator.aheadPorts.map((port) => new Lookup(port));
    translator.connectAhead(
      this.#lookups.map((lookup) => ({ wake: (cycle: Cycles) => this.#goOnAt(lookup, cycle) })),
    );
    this.#stage = domain.addStage(this.#run, this);
  }

  /** The QP at the beginning of the ring has left it. */
  left(): void {
    if (this.#count > 0) this.#count--;
  }

  /** Looks up the READs of further QPs at the beginning of the ring, as many as there are ports. */
  lookUp(): void {
    if (this.#lookups.length === 0) return;
    while (this.#count < this.#lookups.length) {
      const lookup = this.#lookups.find(({ pair }) => pair === undefined);
      const pending = this.#count === 0 ? this.#resources.firstWaiting : this.#last!.next;
      if (lookup === undefined || pending === undefined) return;
      this.#count++;
      this.#last = pending;
      if (this.#takes(lookup, pending)) this.#translate(lookup);
    }
  }

  /** The requests of a QP are dropped: what is looked up for them is no longer wanted. */
  forget(pair: QueuePair): void {
    for (const lookup of this.#lookups) if (lookup.pair === pair) this.#end(lookup);
  }

  #end(lookup: Lookup): void {
    lookup.pair = undefined;
    lookup.readyCycle = NEVER;
  }

  /** Fills in what the oldest request of a QP reads, if it is a READ of at least a byte. */
  #takes(lookup: Lookup, { pair, count }: PendingResponses): boolean {
    if (count === 0) return false;
    const resources = this.#resources;
    const entry = resources.oldest(pair.slot);
    if (resources.kind[entry] !== KIND_READ || resources.bytes[entry] === 0) return false;
    const skippedBytes = resources.sent[entry]! * pair.mtuBytes;
    lookup.pair = pair;
    lookup.psn = resources.psn[entry]!;
    lookup.key = resources.key[entry]!;
    lookup.pd = resources.pd[entry]!;
    lookup.address = resources.address[entry]! + skippedBytes;
    lookup.addressTop = resources.addressTop[entry]!;
    return true;
  }

  #translate(lookup: Lookup): void {
    const { port, pair, key, pd, address, addressTop, psn } = lookup;
    if (pair === undefined) return;
    this.#costs?.worksOnAnswerTo(port.number, pair, psn);
    const { lastRefusal } = pair;
    // The translator may call back at once.
    lookup.readyCycle = NEVER;
    const answer = port.translate(key, pd, address, addressTop, 1, RIGHT_REMOTE_READ, pair);
    // The engine refuses it, if it still does, in its turn.
    pair.lastRefusal = lastRefusal;
    if (answer !== PENDING) lookup.pair = undefined;
  }

  #goOnAt(lookup: Lookup, cycle: Cycles): void {
    lookup.readyCycle = cycle;
    this.#domain.wake(this.#stage, cycle);
  }

  #run(cycle: Cycles): void {
    let nextCycle = NEVER;
    for (const lookup of this.#lookups)
      if (lookup.readyCycle <= cycle) this.#translate(lookup);
      else if (lookup.readyCycle < nextCycle) nextCycle = lookup.readyCycle;
    if (nextCycle < NEVER) this.#domain.wake(this.#stage, nextCycle);
    this.lookUp();
  }

  reset(): void {
    this.#count = 0;
    for (const lookup of this.#lookups) this.#end(lookup);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { lookedUp: this.#lookups.filter(({ pair }) => pair !== undefined).length };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const lookup of this.#lookups) if (lookup.readyCycle !== NEVER) lookup.readyCycle -= cycles;
  }
}
