/* SPDX-License-Identifier: Apache-2.0 */

/* Anyone can send an invalid token, and each one costs a TokenReview: a request to the agent, which
 * serves few clients at once, and one to the API server. So only a few reviews are in progress at
 * once and the others are queued, while requests whose user and access are already known
 * proceed. */

#include "agent/node-api/process/node-api-private.h"

static void give_turn_to_next(NodeApi *server) {
        ApiRequest *request = review_turns_next(&server->reviews);

        if (!request)
                return;
        request->review = API_REVIEW_TURN;
        api_connection_resume(request->connection);
}

void api_review_end(ApiRequest *request) {
        ReviewTurns *turns = &request->server->reviews;

        if (request->review == API_REVIEW_WAITING)
                review_turns_leave_queue(turns, request->review_kind, request);
        else if (request->review == API_REVIEW_TURN)
                review_turns_end(turns, request->review_kind);
        request->review = API_REVIEW_NONE;
        give_turn_to_next(request->server);
}

ApiStepResult api_request_review(ApiRequest *request, ReviewKind kind, const char *path) {
        ApiStepResult result;
        int r;

        if (request->review == API_REVIEW_NONE) {
                r = review_turns_enter(&request->server->reviews, kind, request);
                if (r < 0)
                        return api_reply_text(
                                request, MHD_HTTP_TOO_MANY_REQUESTS,
                                "too many reviews of tokens and access are under way");
                request->review = r > 0 ? API_REVIEW_TURN : API_REVIEW_WAITING;
                request->review_kind = kind;
        }
        if (request->review == API_REVIEW_WAITING)
                return API_STEP_WAIT;
        result = api_request_ask_agent(request, &(AgentRequestSpec){ .kind = AGENT_COLLECT,
                                                                     .path = path,
                                                                     .changes_nothing = true });
        if (result != API_STEP_WAIT)
                api_review_end(request);
        return result;
}
