/**
 * For whom memory is accessed or allocated, how that thread may wait, and what it is answered when there is no frame.
 */
/** Answers of `MemoryManager.allocate` besides a frame. */
export const noFrame = -1;
export const frameLater = -2;

/** How a thread may wait: at its own time, or by giving its core up and asking again. */
export interface AccessMode {
  /** False: what must wait answers "later", with `MemoryManager.retryPs`. */
  readonly waitsInPlace: boolean;
  /** A program: out of memory, the killer is called. The kernel on its behalf: the answer is ENOMEM. */
  readonly isUser: boolean;
}

export const userAccess: AccessMode = { waitsInPlace: true, isUser: true };
export const userAccessLater: AccessMode = { waitsInPlace: false, isUser: true };
export const kernelAccess: AccessMode = { waitsInPlace: true, isUser: false };
