import type { BoundSession } from '../session/session.ts';
import { UnansweredError } from '../turn/questions.ts';
import type { AgentReply } from './requests.ts';
import { type Answer, refused } from './socket.ts';

const NO_TURN = refused('NoTurn', 'no turn runs');
/** Refusal for a process that an earlier turn left running: what it says is nothing of the turn that runs now. */
const TURN_OVER = refused('NoTurn', 'the turn that the request is for has ended, and another one runs');
/** Refusal for a tool: its call has a timeout of its own, which does not pause during a wait. */
const NOT_A_TOOL = refused('NotAsked', 'a tool cannot ask for an approval');

/** Refusal for a command that a client runs beside the turns. */
const NOT_OF_TURN = refused('NoTurn', 'a command belongs to no turn; the agent alone reports for it');

/** Answers requests of commands: they may keep the session from being idle, and say nothing for a turn. */
export function answerForCommands(session: Pick<BoundSession, 'touch'>): Answer {
  return async ({ do: what }): Promise<AgentReply> => {
    if (what !== 'touch') return NOT_OF_TURN;
    session.touch();
    return { ok: true };
  };
}

/** Answers requests of the session's processes with the running turn. */
export function answerFor(session: BoundSession): Answer {
  return async (request, gone): Promise<AgentReply> => {
    if (request.do === 'touch') {
      session.touch();
      return { ok: true };
    }
    const turn = session.running;
    if (!turn) return NO_TURN;
    if (request.turn !== undefined && request.turn !== turn.message.name) return TURN_OVER;
    try {
      if (request.do === 'event') turn.event(request.event);
      else if (request.do === 'result') turn.give(request.result);
      else {
        if (session.bind.agent.driver === 'Tools') return NOT_A_TOOL;
        if (gone.aborted) return refused('Gone', 'nobody waits for the decision');
        const approval = await turn.ask(request.question, gone);
        return { ok: true, decision: approval.decision, approval };
      }
      return { ok: true };
    } catch (error) {
      if (error instanceof UnansweredError) return refused(error.code, error.message);
      if (error instanceof RangeError) return refused('TooLarge', error.message);
      throw error;
    }
  };
}
