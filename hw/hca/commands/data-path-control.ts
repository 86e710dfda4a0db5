/**
 * The data path as the command processor uses it. All calls are made at a clock edge of the HCA, after the
 * command has been found legal and its mailbox has been read.
 */
import type { KeyEntry, KeySteps } from '../keys/index.ts';
import type { CqSlot, QpSlot, SrqSlot } from '../objects/index.ts';
import type { DiagnosticName } from '../statistics/index.ts';

export interface DataPathControl {
  /** A QP's context was created by RST2INIT (state INIT); its bytes are complete. */
  qpCreated(slot: QpSlot): void;
  /** A transition or UPDATE_QP changed the context bytes of a live QP (any state but RST and ERR). */
  qpModified(slot: QpSlot, previousState: number): void;
  /** 2ERR: flush both queues with syndrome 5. */
  qpToError(slot: QpSlot): void;
  /** 2RST: drop everything in flight without completions; the slot is freed by the caller afterwards. */
  qpDestroyed(slot: QpSlot): void;
  /** Writes the live fields (state, PSNs, counters) into the context bytes, for QUERY_QP. */
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
  /** HW2SW_CQ: afterwards neither CQE nor event for it may appear. */
  cqDestroyed(slot: CqSlot): void;
  /** MODIFY_CQ op 0: the context bytes hold the new buffer; write the resize CQE into the old one. */
  cqResized(slot: CqSlot, oldLogSize: number, oldLogPageSize: number, oldMttAddress: number): void;
  /** MODIFY_CQ op 1: moderation period and count in the context bytes changed. */
  cqModerated(slot: CqSlot): void;
  cqSync(slot: CqSlot): void;
  /** True while a CQE or an event of the CQ is on its way, or its doorbell record is being read. */
  cqIsBusy(slot: CqSlot): boolean;
  /** True until the resize CQE has left: behind it nothing is written into the old buffer. */
  cqIsResizing(): boolean;

  srqCreated(slot: SrqSlot): void;
  srqDestroyed(slot: SrqSlot): void;
  /** ARM_SRQ: the limit in the context bytes changed. */
  srqArmed(slot: SrqSlot): void;
  srqSync(slot: SrqSlot): void;
  /** True while a WQE or the doorbell record of the SRQ is being read, or an XRC target's packet for it is worked on. */
  srqIsBusy(slot: SrqSlot): boolean;
  /** The SRQ is not busy any more: XRC targets that had a message for it have nothing of it left. */
  srqGone(slot: SrqSlot): void;

  /** An MPT entry was activated, deactivated or changed in host memory: forget the cached copy. */
  mptChanged(index: number): void;
  /** SYNC_TPT, WRITE_MTT, UNMAP_ICM: forget all cached MPT and MTT entries. */
  translationChanged(): void;
  /** INVALIDATE_PAGES: forget all cached MTT entries. */
  pagesChanged(): void;
  /** Notes which accesses to payload have been begun with what was known before, by whatever translation. */
  beginFence(): void;
  /** True when those accesses have reached host memory, or have come from there. */
  isFencePassed(): boolean;
  /** PAGE_FAULT_RESUME. False: nothing waits under this token. */
  pagesResumed(token: number, isRefused: boolean): boolean;
  /** A command is about to change MPT entries, which work requests change, too. False: it is to ask again. */
  claimMpts(): boolean;
  /** The command has ended: work requests may change entries again. */
  releaseMpts(): void;
  /** Takes a window's binding back: its region counts one less, and its entry, which the command writes, leads nowhere. */
  releaseRegionOf(window: KeyEntry): KeySteps<void>;

  /** Counters of DIAG_RPRT, by the names of its layout. */
  readonly diagnostics: Readonly<Record<DiagnosticName, number>>;

  /** The port came up or went down; packets may or may not be sent. */
  portChanged(isUp: boolean): void;
  /** UNMAP_ICM: notes which reads and writes of ICM pages have been begun. */
  beginIcmFence(): void;
  /** True when those have ended. */
  isIcmFencePassed(): boolean;

  /** CLOSE_HCA: all QPs stop, as by 2RST, so that nothing new is begun. */
  halt(): void;
  /** True while no DMA of the device is under way, but for commands'. */
  isQuiescent(): boolean;
  /** CLOSE_HCA when all is quiet, or a reset, which the DMA engines share: forget every context, all cached entries, all work. */
  resetAll(): void;
}
