/**
 * Data lanes of a card: the lane of each service level, and which lanes are open. Packets of a closed lane are not begun, so that they hold
 * nothing that packets of other lanes need: QPs with requests wait here, and the response engine passes QPs with responses.
 *
 * With one data lane it is off: all packets use lane 0.
 */
import type { Cycles, Picoseconds } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import { MANAGEMENT_LANE, SERVICE_LEVEL_SHIFT, type SlToVlTable } from '../../../../wire/index.ts';
import {
  type DatagramAddresses,
  type QueuePair,
  type SendRecord,
  UD_OPCODE_BASE,
} from '../../objects/index.ts';
import { PARKED_TRANSPORT_WINDOW, type SendScheduler } from '../../send-queue/index.ts';
import type { LaneEgress } from './lane-egress.ts';

/** A port with several data lanes. */
export interface LanePort {
  readonly egress: LaneEgress;
  readonly slToVl: SlToVlTable;
}

export interface LaneGateSetup {
  readonly domain: ClockDomain;
  readonly datagrams: DatagramAddresses;
  /** Empty with one data lane. */
  readonly lanePorts: readonly LanePort[];
}

export interface LaneGatePorts {
  readonly scheduler: Pick<SendScheduler, 'unpark'>;
  readonly responses: {
    wake(cycle: Cycles): void;
  };
}

export class LaneGate {
  readonly isOn: boolean;
  readonly #domain: ClockDomain;
  readonly #datagrams: DatagramAddresses;
  readonly #ports: readonly LanePort[];
  readonly #stage: number;
  /** QPs whose next request found its lane closed; some may have been resumed since. */
  #waiting: QueuePair[] = [];
  #scheduler!: LaneGatePorts['scheduler'];
  #responses!: LaneGatePorts['responses'];

  constructor({ domain, datagrams, lanePorts }: LaneGateSetup) {
    this.isOn = lanePorts.length > 0;
    this.#domain = domain;
    this.#datagrams = datagrams;
    this.#ports = lanePorts;
    this.#stage = this.isOn ? domain.addStage(this.#run, this) : -1;
    for (const { egress } of lanePorts) egress.connect({ gate: this });
  }

  connect({ scheduler, responses }: LaneGatePorts): void {
    this.#scheduler = scheduler;
    this.#responses = responses;
  }

  /** Lane of the packets of a connection; without a meaning, 15 or more than the port has, they are discarded. */
  laneOf({ portIndex, serviceLevelBits }: QueuePair): number {
    return this.#laneAt(portIndex, serviceLevelBits >> SERVICE_LEVEL_SHIFT);
  }

  /** Lane of a datagram by the number of its record. */
  laneOfDatagram({ portIndex }: QueuePair, record: number): number {
    if (this.#datagrams.virtualLane[record] === MANAGEMENT_LANE) return MANAGEMENT_LANE;
    if (!this.isOn) return 0;
    return this.#laneAt(portIndex, (this.#datagrams.pkeyAndLevel[record]! >> SERVICE_LEVEL_SHIFT) & 0xf);
  }

  /** Entry 15 discards packets of data; the number 15 is that of lane 15 elsewhere. */
  #laneAt(portIndex: number, level: number): number {
    const lane = this.#ports[portIndex]!.slToVl.laneOf(level);
    return lane === MANAGEMENT_LANE ? NO_DATA_LANE : lane;
  }

  /** Whether a response of a QP may be begun. */
  mayAnswer(pair: QueuePair): boolean {
    return this.#ports[pair.portIndex]!.egress.isOpen(this.laneOf(pair));
  }

  /** Whether a packet of a request may be begun. If not, the QP is unparked when its lane is open. */
  mayRequest(pair: QueuePair, { number }: SendRecord): boolean {
    const lane = pair.opcodeBase === UD_OPCODE_BASE ? this.laneOfDatagram(pair, number) : this.laneOf(pair);
    if (this.#ports[pair.portIndex]!.egress.isOpen(lane)) return true;
    if (!this.#waiting.includes(pair)) this.#waiting.push(pair);
    return false;
  }

  /** Packets have left a queue. */
  packetsLeft(nowPs: Picoseconds): void {
    this.#domain.wakeAfter(this.#stage, nowPs);
  }

  /** The stage: resumes what waits; a QP whose lane is still closed waits again. */
  #run(cycle: Cycles): void {
    const waiting = this.#waiting;
    if (waiting.length > 0) {
      this.#waiting = [];
      for (const pair of waiting)
        if (pair.parkedFor === PARKED_TRANSPORT_WINDOW) this.#scheduler.unpark(pair, cycle + 1);
    }
    this.#responses.wake(cycle + 1);
  }

  /** Packets that wait in front of the ports. */
  get heldCount(): number {
    return this.#ports.reduce((sum, { egress }) => sum + egress.heldCount, 0);
  }

  reset(): void {
    this.#waiting = [];
    for (const { egress } of this.#ports) egress.reset();
  }

  inspect(): BlockState {
    return {
      waiting: this.#waiting.map(({ slot }) => slot),
      ports: this.#ports.map(({ egress }) => egress.inspect()),
    };
  }
}

/** A lane that no port has. */
const NO_DATA_LANE = 16;
