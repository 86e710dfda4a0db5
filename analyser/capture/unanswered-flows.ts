/** Flows without a known answering flow, by ports and service: finds the flow that an answer belongs to. */
import type { Flow } from './flow.ts';
import { type OpenFlow, OpenPsns, type OpenRange } from './open-psns.ts';

/** The open PSNs of a flow as stored in the trees. */
interface Counted {
  readonly range: OpenRange;
  readonly network: number;
}

/** Flows from one port to another. The trees are built at the first search: many captures have no answers. */
export class UnansweredWay {
  readonly #flows = new Map<number, Flow>();
  readonly #counted = new Map<Flow, Counted>();
  #all: OpenPsns | undefined;
  readonly #byNetwork = new Map<number, OpenPsns>();

  add(flow: Flow): void {
    this.#flows.set(flow.number, flow);
    flow.unansweredIn = this;
    this.update(flow);
  }

  remove(flow: Flow): void {
    this.#flows.delete(flow.number);
    flow.unansweredIn = undefined;
    this.#uncount(flow);
  }

  /** Updates a flow whose open PSNs or network have changed. */
  update(flow: Flow): void {
    if (this.#all === undefined) return;
    this.#uncount(flow);
    const range = flow.openRange;
    if (range === undefined) return;
    const { number, network } = flow;
    this.#counted.set(flow, { range, network });
    this.#all.add(number, range);
    this.#ofNetwork(network).add(number, range);
  }

  /** Returns the only flow that has `psn` open: first within the network, then over all networks if the network has no such flow. */
  flowAt(psn: number, network: number): Flow | undefined {
    if (this.#all === undefined) {
      this.#all = new OpenPsns();
      for (const flow of this.#flows.values()) this.update(flow);
    }
    const near = this.#byNetwork.get(network)?.flowAt(psn) ?? 'none';
    const found: OpenFlow = near === 'none' ? this.#all.flowAt(psn) : near;
    return typeof found === 'number' ? this.#flows.get(found) : undefined;
  }

  #uncount(flow: Flow): void {
    const counted = this.#counted.get(flow);
    if (counted === undefined) return;
    this.#counted.delete(flow);
    this.#all!.remove(flow.number, counted.range);
    this.#byNetwork.get(counted.network)!.remove(flow.number, counted.range);
  }

  #ofNetwork(network: number): OpenPsns {
    const known = this.#byNetwork.get(network);
    if (known !== undefined) return known;
    const made = new OpenPsns();
    this.#byNetwork.set(network, made);
    return made;
  }
}

export class UnansweredFlows {
  readonly #ways = new Map<string, UnansweredWay>();

  add(flow: Flow): void {
    const key = keyOf(flow.from, flow.to, flow.service);
    const known = this.#ways.get(key);
    const way = known ?? new UnansweredWay();
    if (known === undefined) this.#ways.set(key, way);
    way.add(flow);
  }

  /** Finds the flow that a response with `psn` in `flow` answers: a flow of the opposite direction that has sent this PSN. */
  answeredBy({ from, to, service, network }: Flow, psn: number): Flow | undefined {
    return this.#ways.get(keyOf(to, from, service))?.flowAt(psn, network);
  }
}

const keyOf = (from: string, to: string, service: string): string => `${from}>${to}>${service}`;
