/**
 * The data path as the command processor uses it. All calls are made at a clock edge of the HCA, after the
 * command has been found legal and its mailbox has been read.
 */
import type { KeyEntry, KeySteps } from '../keys/index.ts';
import type { CqSlot, QpSlot, SrqSlot } from '../objects/index.ts';
import type { DiagnosticName } from '../statistics/index.ts';

export interface DataPathControl {
  /** A QP's context was created (state INIT); its bytes are complete. */
  qpCreated(slot: QpSlot): void;
  /** A transition changed the context bytes of a live QP (any state but RST and ERR). */
  qpModified(slot: QpSlot, previousState: number): void;
  /** Moves the QP to error: both queues are flushed. */
  qpToError(slot: QpSlot): void;
  /** Moves the QP to reset: work in flight is dropped without completions; the caller frees the slot afterwards. */
  qpDestroyed(slot: QpSlot): void;
  /** Writes the live fields (state, packet numbers, counters) into the context bytes, for a query. */
  qpSync(slot: QpSlot): void;
  /** True while work of this QP is inside the pipelines: a destroying command waits until it is false. */
  qpIsBusy(slot: QpSlot): boolean;
  /** True in state SQD while work requests begun are not complete. */
  qpIsDraining(slot: QpSlot): boolean;
  /** True in states ERR and SQER: the send queue is flushed, and no longer drains. */
  qpIsInError(slot: QpSlot): boolean;
  /** True in state SQER while work requests of the send queue are being flushed. */
  qpIsFlushing(slot: QpSlot): boolean;

  cqCreated(slot: CqSlot): void;
  /** Afterwards neither CQE nor event for the CQ may appear. */
  cqDestroyed(slot: CqSlot): void;
  /** The context bytes hold a new buffer: the CQE that leads software there is written into the old one. */
  cqResized(slot: CqSlot): void;
  /** Moderation period and count in the context bytes changed. */
  cqModerated(slot: CqSlot): void;
  cqSync(slot: CqSlot): void;
  /** True while a CQE or an event of the CQ is on its way, or its doorbell record is being read. */
  cqIsBusy(slot: CqSlot): boolean;
  /** True until that CQE has left: afterwards nothing is written into the old buffer. */
  cqIsResizing(): boolean;

  srqCreated(slot: SrqSlot): void;
  srqDestroyed(slot: SrqSlot): void;
  /** The limit in the context bytes changed. */
  srqArmed(slot: SrqSlot): void;
  srqSync(slot: SrqSlot): void;
  /** True while a WQE or the doorbell record of the SRQ is being read, or an XRC target's packet for it is worked on. */
  srqIsBusy(slot: SrqSlot): boolean;
  /** The SRQ is not busy any more: XRC targets that had a message for it drop it. */
  srqGone(slot: SrqSlot): void;

  /** A key entry was activated, deactivated or changed in host memory: forget the cached copy. */
  mptChanged(index: number): void;
  /** Key entries, translations or the pages that hold them changed: forget all cached ones. */
  translationChanged(): void;
  /** Forgets all cached translations: pages of on-demand regions were removed. */
  pagesChanged(): void;
  /** Notes which accesses to payload have begun with the translations known so far. */
  beginFence(): void;
  /** True when those writes have reached host memory, and the data of those reads have arrived. */
  isFencePassed(): boolean;
  /** Passes software's answer to a page request on. Returns false if nothing waits under this token. */
  pagesResumed(token: number, isRefused: boolean): boolean;
  /** Claims the key entries, which work requests change, too, for a command. False: the command retries. */
  claimMpts(): boolean;
  /** The command has ended: work requests may change entries again. */
  releaseMpts(): void;
  /**
   * Undoes a window's binding: its region counts one less, and its entry, which the command writes, refers to no pages.
   */
  releaseRegionOf(window: KeyEntry): KeySteps<void>;

  /** Diagnostic counters by name. */
  readonly diagnostics: Readonly<Record<DiagnosticName, number>>;

  /** The port came up or went down; packets may or must not be sent. */
  portChanged(isUp: boolean): void;
  /** Software reclaims pages of context memory: notes which reads and writes of them have begun. */
  beginContextFence(): void;
  /** True when those have ended. */
  isContextFencePassed(): boolean;

  /** Stops all QPs as if they were reset, so that no new work begins. */
  halt(): void;
  /** True while no DMA of the device is under way, except that of commands. */
  isQuiescent(): boolean;
  /** Forgets every context, all cached entries, all work: when the device is quiescent, or in a reset, which the DMA engines share. */
  resetAll(): void;
}
