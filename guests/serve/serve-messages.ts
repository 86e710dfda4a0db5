/** Messages between the serving thread and the thread that started it. */

import type { Evidence } from '../../machine/evidence/index.ts';
import type { ErrorRecord, JsonValue } from '../../machine/index.ts';
import type { DroppedRecords } from '../../machine/timeline/index.ts';
import type { ProcessObservations } from '../../sim/index.ts';
import type { PeerState } from './peer-host.ts';
import type { ServeOrder } from './serve-options.ts';
import type { ServeReport } from './serve-report.ts';

/** Arguments of the serving thread. */
export interface ServeStart {
  readonly order: ServeOrder;
  /** One word: the number of {@link ServeRequest}s sent. Read after every turn, for which a message port is too slow. */
  readonly requestCount: SharedArrayBuffer;
}

/** Sent to the serving thread; afterwards the count is raised and the thread woken. */
export type ServeRequest =
  | { readonly kind: 'report'; readonly ticket: number }
  | { readonly kind: 'value'; readonly name: string; readonly value: JsonValue }
  | { readonly kind: 'stop' };

export type ServeMessage =
  | { readonly kind: 'ready'; readonly wakeDescriptor: number }
  | { readonly kind: 'notice'; readonly text: string }
  | { readonly kind: 'report'; readonly ticket: number; readonly report: ServeReport }
  /** Values that the simulated host's program has put into the exchange, and the program's outcome. */
  | { readonly kind: 'value'; readonly name: string; readonly value: JsonValue }
  | { readonly kind: 'peer'; readonly state: PeerState }
  | {
      readonly kind: 'ended';
      readonly report: ServeReport;
      /** Empty unless the order requests a timeline. */
      readonly observations: readonly ProcessObservations[];
      /** Records that each captured end dropped. */
      readonly captureDrops: readonly DroppedRecords[];
      /** Empty unless the order requests evidence. */
      readonly evidence: Evidence;
    }
  | { readonly kind: 'failed'; readonly error: ErrorRecord };
