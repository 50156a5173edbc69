/* SPDX-License-Identifier: Apache-2.0 */

/* Anyone can send a made-up token, and each costs a TokenReview: a request to the agent,
 * which serves few clients at once, and one to the API server. So few reviews are under way, and
 * others wait their turn, while requests whose user and access are known pass. */

#include "agent/node-api/node-api-private.h"

static void give_turn_to_next(NodeApi *server) {
        ApiRequest *request;

        if (server->n_reviews >= API_REVIEWS_MAX || server->n_waiting_reviews == 0)
                return;
        request = server->waiting_reviews[0];
        server->n_waiting_reviews--;
        memmove(&server->waiting_reviews[0], &server->waiting_reviews[1],
                server->n_waiting_reviews * sizeof(*server->waiting_reviews));
        request->review = API_REVIEW_TURN;
        server->n_reviews++;
        api_connection_resume(request->connection);
}

static void remove_waiting_review(NodeApi *server, const ApiRequest *request) {
        size_t n = 0;

        for (size_t i = 0; i < server->n_waiting_reviews; i++)
                if (server->waiting_reviews[i] != request)
                        server->waiting_reviews[n++] = server->waiting_reviews[i];
        server->n_waiting_reviews = n;
}

void api_review_end(ApiRequest *request) {
        NodeApi *server = request->server;

        if (request->review == API_REVIEW_WAITING)
                remove_waiting_review(server, request);
        else if (request->review == API_REVIEW_TURN)
                server->n_reviews--;
        request->review = API_REVIEW_NONE;
        give_turn_to_next(server);
}

ApiStepResult api_request_review(ApiRequest *request, const char *path, const char *body) {
        NodeApi *server = request->server;
        ApiStepResult result;

        if (request->review == API_REVIEW_NONE && server->n_reviews < API_REVIEWS_MAX) {
                request->review = API_REVIEW_TURN;
                server->n_reviews++;
        }
        if (request->review == API_REVIEW_NONE) {
                if (server->n_waiting_reviews == API_REVIEWS_WAITING_MAX)
                        return api_reply_text(
                                request, MHD_HTTP_TOO_MANY_REQUESTS,
                                "too many reviews of tokens and access are under way");
                server->waiting_reviews[server->n_waiting_reviews++] = request;
                request->review = API_REVIEW_WAITING;
        }
        if (request->review == API_REVIEW_WAITING)
                return API_STEP_WAIT;
        result = api_request_ask_agent(request, &(AgentRequestSpec){ .kind = AGENT_COLLECT,
                                                                     .method = "POST",
                                                                     .path = path,
                                                                     .body = body,
                                                                     .changes_nothing = true });
        if (result != API_STEP_WAIT)
                api_review_end(request);
        return result;
}
