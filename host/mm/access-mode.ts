/** The process for which memory is accessed or allocated, how the thread may wait, and the answer if no frame is left. */
/** Answers of `MemoryManager.allocate` besides a frame. */
export const noFrame = -1;
export const frameLater = -2;

/** Manner in which a thread may wait: at its own time, or by yielding its core and asking again. */
export interface AccessMode {
  /** False: an access that must wait answers "later", with `MemoryManager.retryPs`. */
  readonly waitsInPlace: boolean;
  /** A program: if memory is exhausted, the killer runs. The kernel on its behalf: the answer is ENOMEM. */
  readonly isUser: boolean;
}

export const userAccess: AccessMode = { waitsInPlace: true, isUser: true };
export const userAccessLater: AccessMode = { waitsInPlace: false, isUser: true };
export const kernelAccess: AccessMode = { waitsInPlace: true, isUser: false };
