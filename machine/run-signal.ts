/**
 * A signal by which a run is called off. The type is the part of AbortSignal that is used, so that it compiles where neither the
 * DOM's types nor Node's are.
 */
import { ConfigurationError, textOfThrown } from '../base/index.ts';
import { RunAbortedError } from '../sim/index.ts';

/** An AbortSignal, or what acts like one. */
export interface RunSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * Runs something that a signal may call off.
 * @param abort has it end with a RunAbortedError, with this reason
 * @throws RunAbortedError, whose cause is the signal's reason; at once, and nothing has run, for a signal that is aborted already
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
