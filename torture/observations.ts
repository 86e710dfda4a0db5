/**
 * Observations of a story's program: return values, completions, bytes, and the times of its own clock. Plain JSON, for any partition.
 * Bytes are in base64.
 */

/** A request that was handed to the library; times are the core's, before and after the call. */
export interface PostSeen {
  readonly id: number;
  readonly qp: number;
  readonly fromPs: number;
  readonly toPs: number;
  /** 0, or the errno with which it was finally refused. */
  readonly error: number;
  /** Whether it was posted to complete with a completion of its own. */
  readonly isSignalled: boolean;
  /** The key that it makes, uses or invalidates: of a window. */
  readonly key?: number;
}

export interface CompletionSeen {
  readonly id: number;
  /** Place of the QP in the program's plan; -1: a number that no QP has. */
  readonly qp: number;
  readonly cq: number;
  /** IBV_WC_… by number. */
  readonly status: number;
  readonly opcode: number;
  readonly byteLen: number;
  readonly imm: number;
  readonly flags: number;
  /** Instants before and after the poll that returned it. */
  readonly fromPs: number;
  readonly toPs: number;
  /** Contents of the buffers of a successful receive, READ or atomic when the completion was polled. */
  readonly bytes?: string;
}

export interface Observations {
  /** Why the program could not begin; null when it could. */
  readonly failure: string | null;
  readonly posts: readonly PostSeen[];
  readonly receives: readonly PostSeen[];
  readonly completions: readonly CompletionSeen[];
  readonly fills: readonly { readonly area: number; readonly fill: number; readonly atPs: number }[];
  /** Ranges of areas that were discarded with madvise(2): zeros from then on. */
  readonly givenBack: readonly {
    readonly area: number;
    readonly offset: number;
    readonly length: number;
    readonly atPs: number;
  }[];
  readonly peeks: readonly {
    readonly area: number;
    readonly offset: number;
    readonly atPs: number;
    readonly bytes: string;
  }[];
  readonly deregistrations: readonly {
    readonly area: number;
    readonly fromPs: number;
    readonly toPs: number;
  }[];
  /** Windows that were deallocated, and when the call began and ended. */
  readonly deallocations: readonly {
    readonly window: number;
    readonly fromPs: number;
    readonly toPs: number;
  }[];
  /** QPs that the program itself took out of service, and when the call began and ended. */
  readonly broken: readonly { readonly qp: number; readonly fromPs: number; readonly toPs: number }[];
  /** Whole areas at the end, in order; empty when the program ended early. */
  readonly finals: readonly string[];
  readonly finalPs: number;
  readonly events: readonly string[];
  /** Verbs that failed, as `verb: code`. */
  readonly refusals: readonly string[];
  /** Waits that ended because nothing progressed for longer than the attributes can explain. */
  readonly impatience: readonly string[];
  /** Requests that had not completed at the end. */
  readonly unfinished: readonly number[];
  /** Calls of post_send that posted anything, and requests in them. */
  readonly doorbells: number;
  /** Expected events that did not occur. */
  readonly missing: readonly string[];
  /** Forbidden events that happened. */
  readonly surprises: readonly string[];
  /** Number of times that the limit of an SRQ was armed. */
  readonly limitsArmed: number;
}
