/**
 * A signal that aborts a run. The type is the part of AbortSignal that is used, so that it compiles without the DOM's
 * and Node's types.
 */
import { ConfigurationError, textOfThrown } from '../base/index.ts';
import { RunAbortedError } from '../sim/index.ts';

/** An AbortSignal or a compatible object. */
export interface RunSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * Runs a function that a signal may abort.
 * @param abort ends the run with a RunAbortedError that has this reason
 * @throws RunAbortedError, whose cause is the signal's reason; immediately, before anything has run, if the signal is
 * already aborted
 */
export async function underSignal<T>(
  signal: RunSignal | undefined,
  abort: (reason: string) => void,
  run: () => Promise<T>,
): Promise<T> {
  if (signal === undefined) return run();
  if (!isSignal(signal)) throw new ConfigurationError('signal', signal, 'an AbortSignal');
  if (signal.aborted) throw abortedBy(signal);
  const onAbort = (): void => abort(textOfThrown(signal.reason));
  signal.addEventListener('abort', onAbort);
  try {
    return await run();
  } catch (error) {
    if (error instanceof RunAbortedError && signal.aborted) throw abortedBy(signal);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function isSignal(signal: unknown): signal is RunSignal {
  if (typeof signal !== 'object' || signal === null) return false;
  const { aborted, addEventListener, removeEventListener } = signal as Partial<RunSignal>;
  return (
    typeof aborted === 'boolean' &&
    typeof addEventListener === 'function' &&
    typeof removeEventListener === 'function'
  );
}

const abortedBy = ({ reason }: RunSignal): RunAbortedError =>
  new RunAbortedError(`the run was called off: ${textOfThrown(reason)}`, { cause: reason });
