/** A story of a fabric that was played: everything that can be judged. */
import type { Report } from '../../machine/index.ts';
import type { Topology } from '../../machine/topology/index.ts';
import type { BlockState } from '../../sim/index.ts';
import type { FabricStory, HostOutcome } from './fabric-story.ts';

export interface PlayedFabric {
  readonly story: FabricStory;
  readonly topology: Topology;
  readonly hostCount: number;
  /** By host; empty if the run failed. */
  readonly outcomes: readonly HostOutcome[];
  readonly report: Report;
  /** Frames at the cables of all hosts. */
  readonly capture: Uint8Array | undefined;
  /** State of the switches, by node: before anything was sent, and when all had ended. */
  readonly fresh: ReadonlyMap<number, BlockState>;
  readonly ended: ReadonlyMap<number, BlockState>;
  readonly error: Error | undefined;
}

export const isOnEthernet = ({ story }: PlayedFabric): boolean =>
  story.set['hca.capability.linkLayer'] === 'ethernet';

/** Whether ports stop their senders, so that nothing is lost for lack of room. */
export const isLossless = (played: PlayedFabric): boolean =>
  !isOnEthernet(played) || played.story.set['switch.ethernet.flowControl'] !== 'none';

export const hasPacketFault = ({ story }: PlayedFabric, ...effects: readonly string[]): boolean =>
  story.faults.some(({ packet }) => effects.includes(String(packet)));
